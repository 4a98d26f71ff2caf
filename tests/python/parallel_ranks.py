"""What the ranks of launch_test.py and launch_over_hosts_test.py run: TRIAL LEARNING_RATE. They train one model; trial 1's last
rank fails, while the others wait for it."""
import os
import sys
import traceback

print("imported before:", "torch" in sys.modules, flush=True)
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402


def fail(*error):
    traceback.print_exception(*error)
    sys.stderr.flush()
    os._exit(1)  # PyTorch's threads may meet the interpreter's end: "terminate called without an active exception"


dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), float(sys.argv[2]))
for step in range(1, 4):
    if sys.argv[1] == "1" and rank == size - 1 and step == 2:
        sys.excepthook = fail  # in place of PyTorch's
        raise ValueError("the last rank has read a bad sample")
    optimizer.zero_grad()
    loss = model(torch.full((4, 1), float(rank))).square().mean()
    loss.backward()
    optimizer.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    print(f"rank {rank} of {size}, step={step} loss={total.item()}", flush=True)
dist.destroy_process_group()
os._exit(0)  # as above
