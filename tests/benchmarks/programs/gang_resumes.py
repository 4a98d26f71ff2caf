"""A script that trains with DistributedDataParallel on CPU and goes on from its checkpoint, on however many ranks. It knows
nothing of Espalier.

usage: gang_resumes.py CHECKPOINTS LOG: rank 0 writes each step to LOG, as peers/step_log.py reads it.
"""
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist


def main(folder, log):
    checkpoint = pathlib.Path(folder) / "newest.pt"
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    step = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    first = dist.get_rank() == 0
    with open(log, "a", buffering=1) as out:
        while True:
            step += 1
            optimizer.zero_grad()
            loss = parallel(torch.randn(16, 64)).square().mean()
            loss.backward()
            optimizer.step()
            if not first:
                continue
            out.write(f"{time.monotonic()} {dist.get_world_size()}\n")
            print(f"step={step} loss={loss.item()}", flush=True)
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, f"{checkpoint}.new")
            os.replace(f"{checkpoint}.new", checkpoint)
            time.sleep(0.05)


main(*sys.argv[1:])
