"""DeepSpeed's ZeRO-1: each rank holds a part of the optimizer's state."""
import deepspeed
import plan
import torch

CONFIG = {"train_micro_batch_size_per_gpu": 16, "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": True}


def main():
    given = plan.arguments()
    deepspeed.init_distributed("gloo")
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 4)
    engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(model.parameters(), given.lr), config=CONFIG)
    torch.manual_seed(1 + plan.rank())
    for step in plan.steps():
        loss = engine(torch.randn(16, 8)).square().mean()
        engine.backward(loss)
        engine.step()
        plan.follow(step, loss.item())
    plan.end(engine.module.state_dict())
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


main()
plan.leave()
