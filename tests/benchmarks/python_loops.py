"""The training loops that the Python benchmarks compare, each as a plain PyTorch loop and as an elastic one.

    python_loops.py MODEL PAIRS TURN_S    alternates turns of both in one process

Says on which device, which is that of the slot, or the first GPU. Then prints a line a pair: seconds a step plain and
elastic, processor seconds a step plain and elastic."""
import sys
import time

import torch
import torch._dynamo  # noqa: F401  not within a turn
import torch.nn.functional as F
from torch.utils.data import Dataset

import espalier
import espalier.torch as adl


class _Block(torch.nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        nn = torch.nn
        self.body = nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
                                  nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        self.short = (nn.Sequential() if stride == 1 and before == after else
                      nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)))

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


def _resnet18():
    nn = torch.nn
    layers, channels = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
    for after, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(_Block(channels, after, stride))
        channels = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def _convnet():
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(32 * 49, 64), nn.ReLU(), nn.Linear(64, 10))


def _mlp():
    nn = torch.nn
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


# The net, its input, the batch.
MODELS = {"convnet": (_convnet, (1, 28, 28), 64), "resnet18": (_resnet18, (3, 32, 32), 16),
          "small_mlp": (_mlp, (64,), 64)}
SAMPLES = 8192


class Batches(Dataset):
    """Samples that are there already, read a batch at a time."""

    def __init__(self, shape, device):
        generator = torch.Generator().manual_seed(1)
        self.x = torch.randn(SAMPLES, *shape, generator=generator).to(device)
        self.y = torch.randint(0, 10, (SAMPLES,), generator=generator).to(device)

    def __len__(self):
        return SAMPLES

    def __getitems__(self, indices):
        return self.x[indices], self.y[indices]


def as_it_is(batch):
    return batch


class Turns:
    """Steps of one loop, as many as a turn has room for."""

    def __init__(self, batches, device):
        self._batches = batches  # an endless iterator that steps once an item
        self._device = device

    def take(self, seconds):
        start, cpu, steps = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - start < seconds or steps < 2:
            next(self._batches)
            steps += 1
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return (time.perf_counter() - start) / steps, (time.process_time() - cpu) / steps


def plain(make, dataset, batch):
    torch.manual_seed(0)
    model = make().to(dataset.x.device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    loader = torch.utils.data.DataLoader(dataset, batch_size=batch, shuffle=True, collate_fn=as_it_is)
    while True:
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            yield


def elastic(make, dataset, batch):
    torch.manual_seed(0)
    model = make().to(dataset.x.device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    parallel = adl.AdaptiveDataParallel(model, optimizer)
    loader = adl.AdaptiveDataLoader(dataset, batch_size=batch, shuffle=True, collate_fn=as_it_is)
    for _ in adl.remaining_epochs_until(2**40):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(parallel(x), y).backward()
            optimizer.step()
            yield


def main():
    name, pairs, turn_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    make, shape, batch = MODELS[name]
    device = espalier.trial().device  # it sets the number of threads for both
    print("on", device)
    dataset = Batches(shape, device)
    ours = Turns(elastic(make, dataset, batch), device)
    theirs = Turns(plain(make, dataset, batch), device)
    for turns in (theirs, ours):
        turns.take(turn_s)  # to warm up
    for pair in range(pairs):
        both = {}
        for which, turns in ((0, theirs), (1, ours)) if pair % 2 == 0 else ((1, ours), (0, theirs)):
            both[which] = turns.take(turn_s)
        print(both[0][0], both[1][0], both[0][1], both[1][1], flush=True)


if __name__ == "__main__":
    main()
