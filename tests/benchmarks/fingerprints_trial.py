"""A turn of fingerprints.py: a replica of two that trains one of the models of python_loops.py.

usage: fingerprints_trial.py MODEL STEPS FILE: rank 0 writes processor seconds of a step to FILE, and those of asking the
optimizer once for its state."""
import json
import sys
import time

import python_loops
import torch
import torch.nn.functional as F

import espalier
import espalier.torch as adl


def main():
    name, steps, file = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    make, shape, batch = python_loops.MODELS[name]
    trial = espalier.trial()
    torch.manual_seed(0)
    model = make().to(trial.device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    parallel = adl.AdaptiveDataParallel(model, optimizer)
    loader = adl.AdaptiveDataLoader(python_loops.Batches(shape, trial.device), batch_size=batch, shuffle=True,
                                    collate_fn=python_loops.as_it_is)
    start = 0.0
    for _ in adl.remaining_epochs_until(2**40):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(parallel(x), y)
            loss.backward()
            optimizer.step()
            if parallel.steps == steps:
                start = time.process_time()
            if parallel.steps == 2 * steps:
                break
        if parallel.steps >= 2 * steps:
            break
    step_s = (time.process_time() - start) / steps
    if parallel.rank == 0:
        begin = time.process_time()
        for _ in range(100):
            espalier._runtime.runtime().models[0].compared()
        asked_s = (time.process_time() - begin) / 100
        with open(file, "w", encoding="utf-8") as out:
            json.dump({"step_s": step_s, "asked_s": asked_s}, out)
    trial.report(1, loss.item())


if __name__ == "__main__":
    main()
