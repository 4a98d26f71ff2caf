"""PyTorch's DistributedDataParallel, one thread a process: over Gloo, or over NCCL with all replicas on the first GPU,
each of which NCCL then takes for another host.

usage: ddp.py WORKLOAD REPLICAS SECONDS [cpu|cuda]: prints samples a second over all replicas.
"""
import os
import sys
import tempfile
import time

import torch
import torch.distributed
import torch.multiprocessing
import torch.nn.functional as F

import models

WARMUP_S = 1.0


def train(rank, workload, replicas, seconds, device, meeting):
    torch.set_num_threads(1)
    os.environ["NCCL_HOSTID"] = str(rank)
    torch.distributed.init_process_group({"cpu": "gloo", "cuda": "nccl"}[device], init_method=f"file://{meeting}", rank=rank,
                                         world_size=replicas)
    torch.manual_seed(1)
    net, inputs, labels, batch = models.make(workload)
    net, inputs, labels = net.to(device), inputs.to(device), labels.to(device)
    net = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = models.make_optimizer(net)
    order = torch.randperm(1 << 21)
    local = batch // replicas

    def step(i):
        begin = (i * batch + rank * local) % (order.numel() - batch)
        rows = order[begin:begin + local].to(device, non_blocking=True).remainder(inputs.size(0))
        optimizer.zero_grad()
        F.cross_entropy(net(inputs[rows]), labels[rows]).backward()
        optimizer.step()

    def now():
        if device == "cuda":
            torch.cuda.synchronize()
        return time.monotonic()

    for i in range(5):
        step(i)
    # All make the same number of steps: as many as rank 0 says.
    begin = now()
    for i in range(10):
        step(i)
    each = torch.tensor((now() - begin) / 10, device=device)
    torch.distributed.broadcast(each, 0)
    for i in range(int(WARMUP_S / each.item()) + 1):
        step(i)
    steps = int(seconds / each.item()) + 1
    begin = now()
    for i in range(steps):
        step(i)
    took_s = now() - begin
    if rank == 0:
        print(steps * batch / took_s, flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def main(workload, replicas, seconds, device="cpu"):
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (workload, int(replicas), float(seconds), device, os.path.join(folder, "meeting")),
                                    nprocs=int(replicas))


if __name__ == "__main__":
    main(*sys.argv[1:])
