"""Evaluates between two batches of a step, again and again, and reports how many samples each epoch had. Trains until the
file is there.

usage: evaluated_within_steps.py STOP"""
import os
import pathlib
import sys
from time import sleep as pause

import torch

import espalier
import espalier.torch as adl

SAMPLES, BATCH = 80, 16


def main():
    print("begins", os.getpid(), flush=True)
    stop = pathlib.Path(sys.argv[1])
    trial = espalier.trial()
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.001)
    # A lone replica above the base batch size takes each step in two batches.
    parallel = adl.AdaptiveDataParallel(model, optimizer, base_batch_size=BATCH // 2)
    data = torch.utils.data.TensorDataset(torch.randn(SAMPLES, 4), torch.randn(SAMPLES, 1))
    loader = adl.AdaptiveDataLoader(data, batch_size=BATCH, shuffle=True)
    seen = adl.Accumulator()
    for epoch in adl.remaining_epochs_until(2**40):
        for x, y in loader:
            torch.nn.functional.mse_loss(parallel(x), y).backward()
            optimizer.step()
            seen["samples"] += len(x)
            if loader.accumulating():
                pause(0.05)  # so that most changes are announced here
                adl.evaluate(lambda indices: {"count": len(indices)}, SAMPLES, SAMPLES)
        with seen.synchronized():
            samples = seen["samples"]
            seen.clear()
        stops = adl.evaluate(lambda indices: {"stops": int(stop.exists())}, 1, 1)["stops"]
        trial.report(epoch + 1, samples)
        if stops:
            return


if __name__ == "__main__":
    main()
