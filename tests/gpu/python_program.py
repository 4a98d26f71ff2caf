"""The small programs of python_steps.py.

    python_program.py trains FOLDER     an elastic trial until there is FOLDER/stop; each replica writes its steps to
                                        FOLDER/logs/PID as bench_resize_trial does, and its device to FOLDER/devices/PID
    python_program.py exact OPTIMIZER   our loop beside the plain one: prints device, steps and the largest difference between
                                        their parameters, over the largest parameter
    python_program.py hoards FILE       takes memory on the device until it is refused, or until it has all that there is, and
                                        writes down what it got, of what, and the error"""
import json
import os
import pathlib
import re
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch.utils.data import TensorDataset

import espalier
import espalier.torch as adl

SAMPLES, FEATURES, BATCH, EPOCHS = 2048, 16, 64, 2


def data(device):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(SAMPLES, FEATURES, generator=generator)
    y = (x @ torch.randn(FEATURES, generator=generator) > 0).long()
    return x.to(device), y.to(device)


def net(device):
    torch.manual_seed(2)
    nn = torch.nn
    return nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)


def trains(folder):
    folder = pathlib.Path(folder)
    trial = espalier.trial()
    x, y = data(trial.device)
    model = net(trial.device)
    optimizer = torch.optim.SGD(model.parameters(), trial.get("lr", 0.1), momentum=0.9)
    parallel = adl.AdaptiveDataParallel(model, optimizer)
    loader = adl.AdaptiveDataLoader(TensorDataset(x.cpu(), y.cpu()), batch_size=BATCH, shuffle=True)
    runtime = espalier._runtime.runtime()

    def count(indices):
        with torch.no_grad():
            return {"correct": (model(x[indices]).argmax(1) == y[indices]).sum().item(),
                    "stop": float((folder / "stop").exists())}

    (folder / "devices" / str(os.getpid())).write_text(str(next(model.parameters()).device), encoding="utf-8")
    with open(folder / "logs" / str(os.getpid()), "w", encoding="utf-8") as log:
        for epoch in adl.remaining_epochs_until(2**40):
            for inputs, labels in loader:
                optimizer.zero_grad()
                F.cross_entropy(parallel(inputs.to(trial.device)), labels.to(trial.device)).backward()
                optimizer.step()
                print(f"{time.monotonic():.6f}", runtime.position.generation, parallel.rank, parallel.replicas,
                      parallel.steps, file=log, flush=True)
            sums = adl.evaluate(count, SAMPLES, 512)
            trial.report(epoch + 1, sums["correct"] / SAMPLES)
            if sums["stop"] > 0:
                break


def exact(name):
    trial = espalier.trial()
    x, y = data(trial.device)
    models = [net(trial.device) for _ in range(2)]
    ours, theirs = (getattr(torch.optim, name)(model.parameters(), lr=0.01) for model in models)
    parallel = adl.AdaptiveDataParallel(models[0], ours, scaling_rule=None)
    loader = adl.AdaptiveDataLoader(TensorDataset(torch.arange(SAMPLES)), batch_size=BATCH, shuffle=True)
    steps = 0
    for _ in adl.remaining_epochs_until(EPOCHS):
        for (indices,) in loader:
            for optimizer, model in ((ours, parallel), (theirs, models[1])):
                optimizer.zero_grad()
                F.cross_entropy(model(x[indices]), y[indices]).backward()
                optimizer.step()
            steps += 1
    flat = [torch.cat([p.detach().reshape(-1) for p in model.parameters()]) for model in models]
    difference = ((flat[0] - flat[1]).abs().max() / flat[1].abs().max()).item()
    print(json.dumps({"device": str(flat[0].device), "steps": steps, "difference": difference}))


def hoards(path):
    trial = espalier.trial()
    on_gpu = trial.device.type == "cuda"
    if on_gpu:
        block, of, refusal = 256 << 20, torch.cuda.get_device_properties(trial.device).total_memory, torch.OutOfMemoryError
    else:
        block, of, refusal = 32 << 20, 1 << 30, RuntimeError
        has_kib = int(re.search(r"VmSize:\s+(\d+)", pathlib.Path("/proc/self/status").read_text(encoding="utf-8"))[1])
        resource.setrlimit(resource.RLIMIT_AS, ((has_kib << 10) + of // 2, resource.getrlimit(resource.RLIMIT_AS)[1]))
    held, error = [], ""
    while len(held) * block < of and not error:
        try:
            held.append(torch.empty(block, dtype=torch.uint8, device=trial.device))
        except refusal as refused:
            error = str(refused)
    got = len(held) * block
    held.clear()
    pathlib.Path(path).write_text(json.dumps({"bytes": got, "of": of, "error": error}), encoding="utf-8")
    trial.report(1, got / of)


if __name__ == "__main__":
    {"trains": trains, "exact": exact, "hoards": hoards}[sys.argv[1]](sys.argv[2])
