"""A loop of Hugging Face Accelerate."""
import plan
import torch
from accelerate import Accelerator


def main():
    given = plan.arguments()
    accelerator = Accelerator()
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 4)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), given.lr))
    torch.manual_seed(1 + accelerator.process_index)
    for step in plan.steps():
        optimizer.zero_grad()
        loss = model(torch.randn(16, 8)).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        plan.follow(step, loss.item())
    plan.end(accelerator.unwrap_model(model).state_dict())
    accelerator.wait_for_everyone()
    accelerator.end_training()


main()
plan.leave()
