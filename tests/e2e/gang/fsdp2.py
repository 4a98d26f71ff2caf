"""FSDP2 (fully_shard) on CPU over Gloo: each rank holds a part of each parameter."""
import plan
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def main():
    given = plan.arguments()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    fully_shard(model, mesh=init_device_mesh("cpu", (plan.size(),)))
    optimizer = torch.optim.SGD(model.parameters(), given.lr)
    torch.manual_seed(1 + plan.rank())
    for step in plan.steps():
        optimizer.zero_grad()
        loss = model(torch.randn(16, 8)).square().mean()
        loss.backward()
        optimizer.step()
        plan.follow(step, loss.item())
    plan.end({name: tensor.full_tensor() for name, tensor in model.state_dict().items()})
    dist.barrier()
    dist.destroy_process_group()


main()
plan.leave()
