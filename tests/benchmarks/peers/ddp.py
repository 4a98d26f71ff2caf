"""PyTorch's DistributedDataParallel over Gloo, one thread a process.

usage: ddp.py WORKLOAD REPLICAS SECONDS: prints samples a second over all replicas.
"""
import sys
import time

import portpicker
import torch
import torch.distributed
import torch.multiprocessing
import torch.nn.functional as F

import models

WARMUP_S = 1.0


def train(rank, workload, replicas, seconds, port):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                                         world_size=replicas)
    torch.manual_seed(1)
    net, inputs, labels, batch = models.make(workload)
    net = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = models.make_optimizer(net)
    order = torch.randperm(1 << 21)
    local = batch // replicas

    def step(i):
        begin = (i * batch + rank * local) % (order.numel() - batch)
        rows = order[begin:begin + local].remainder(inputs.size(0))
        optimizer.zero_grad()
        F.cross_entropy(net(inputs[rows]), labels[rows]).backward()
        optimizer.step()

    for i in range(5):
        step(i)
    # All make the same number of steps: as many as rank 0 says.
    begin = time.monotonic()
    for i in range(10):
        step(i)
    each = torch.tensor((time.monotonic() - begin) / 10)
    torch.distributed.broadcast(each, 0)
    for i in range(int(WARMUP_S / each.item()) + 1):
        step(i)
    steps = int(seconds / each.item()) + 1
    begin = time.monotonic()
    for i in range(steps):
        step(i)
    if rank == 0:
        print(steps * batch / (time.monotonic() - begin), flush=True)
    torch.distributed.barrier()


if __name__ == "__main__":
    torch.multiprocessing.spawn(
        train, (sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), portpicker.pick_unused_port()),
        nprocs=int(sys.argv[2]))
