"""What torchrun starts in the benchmarks: one worker of a group that trains the small workload.

usage: python -m torch.distributed.run ... torchrun_worker.py LOG [cpu|cuda]

On a GPU all workers share the first, and NCCL takes each for another host. Rank 0 writes each step to LOG, as step_log.py reads it; each worker writes its process to LOG.RANK.
A worker ends with the agent that started it.

torch 2.11 looks for the second round's store at the first round's address (pytorch issue 123678)
unless TORCH_DISABLE_SHARE_RDZV_TCP_STORE is set, as ENVIRONMENT does.
"""
import os
import sys
import time

ENVIRONMENT = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"}


def train(log, device="cpu"):
    import torch
    import torch.distributed
    import torch.nn.functional as F
    import models
    torch.set_num_threads(1)
    os.environ["NCCL_HOSTID"] = str(os.getpid())
    torch.distributed.init_process_group({"cpu": "gloo", "cuda": "nccl"}[device])
    rank, workers = torch.distributed.get_rank(), torch.distributed.get_world_size()
    net, inputs, labels, batch = models.make("small")
    net, inputs, labels = net.to(device), inputs.to(device), labels.to(device)
    net = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = models.make_optimizer(net)
    with open(f"{log}.{rank}", "w") as file:
        file.write(str(os.getpid()))
    agent = os.getppid()
    with open(log, "a", buffering=1) as out:
        while os.getppid() == agent:
            rows = torch.randint(len(inputs), (batch // workers,), device=device)
            optimizer.zero_grad()
            F.cross_entropy(net(inputs[rows]), labels[rows]).backward()
            optimizer.step()
            if rank == 0:
                out.write(f"{time.monotonic()} {workers}\n")


if __name__ == "__main__":
    train(*sys.argv[1:])
