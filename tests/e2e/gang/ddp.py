"""DistributedDataParallel over Gloo, by what env:// reads."""
import plan
import torch
import torch.distributed as dist


def main():
    given = plan.arguments()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), given.lr)
    torch.manual_seed(1 + plan.rank())
    for step in plan.steps():
        optimizer.zero_grad()
        loss = model(torch.randn(16, 8)).square().mean()
        loss.backward()
        optimizer.step()
        plan.follow(step, loss.item())
    plan.end(model.module.state_dict())
    dist.barrier()
    dist.destroy_process_group()


main()
plan.leave()
