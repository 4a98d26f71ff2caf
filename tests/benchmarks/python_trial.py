"""bench_resize_trial as a PyTorch program: the same nets, batches, optimizer and record of steps.

usage: python_trial.py FOLDER WORKLOAD: trains for ever. Each replica writes the end of every step to FOLDER/PID:
monotonic seconds, generation, rank, replicas, step."""
import os
import sys
import time

import torch.nn.functional as F
from torch.utils.data import Dataset

import espalier
import espalier.torch as adl

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import models  # noqa: E402

SAMPLES = 1 << 21  # as in workloads.h: an epoch's end does not fall into a measurement


class Rows(Dataset):
    """The few samples in memory, again and again, read a batch at a time."""

    def __init__(self, inputs, labels):
        self._inputs, self._labels = inputs, labels

    def __len__(self):
        return SAMPLES

    def __getitems__(self, indices):
        rows = [i % len(self._inputs) for i in indices]
        return self._inputs[rows], self._labels[rows]


def as_it_is(batch):
    return batch


def main():
    folder, workload = sys.argv[1:]
    device = espalier.trial().device
    net, inputs, labels, batch = models.make(workload)
    net, inputs, labels = net.to(device), inputs.to(device), labels.to(device)
    optimizer = models.make_optimizer(net)
    parallel = adl.AdaptiveDataParallel(net, optimizer, scaling_rule=adl.scaling_rules.AdaScale())
    loader = adl.AdaptiveDataLoader(Rows(inputs, labels), batch_size=batch, shuffle=True, collate_fn=as_it_is)
    runtime = espalier._runtime.runtime()
    with open(os.path.join(folder, str(os.getpid())), "w", encoding="utf-8") as log:
        for _ in adl.remaining_epochs_until(2**40):
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(parallel(x), y).backward()
                optimizer.step()
                print(f"{time.monotonic():.6f}", runtime.position.generation, parallel.rank, parallel.replicas,
                      parallel.steps, file=log, flush=True)


if __name__ == "__main__":
    main()
