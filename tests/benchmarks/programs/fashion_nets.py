"""Records small nets on Fashion-MNIST over width, depth and learning rate, for the benchmark objectives:

    fashion_nets.py OUT.jsonl

It needs torch. A line of OUT is one net: its width, depth and learning rate, how many parameters it has, the time to
classify one image on one thread (the least of the medians of some rounds), processor seconds an epoch, and its error on
held-out images after each epoch. Nets that OUT has are not trained again."""
import gzip
import itertools
import json
import pathlib
import statistics
import sys
import time

import numpy as np
import torch
from torch import nn

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
EPOCHS = 12
BATCH = 64
SAMPLES, HELD_OUT = 8000, 5000
ROUNDS, CALLS = 7, 60
WIDTHS = [8, 16, 32, 64, 128, 256]
DEPTHS = [1, 2, 3, 4]
RATES = [3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1]


def read(part, count):
    def content(kind, offset):
        with gzip.open(DATA / f"{part}-{kind}-ubyte.gz") as file:
            return np.frombuffer(file.read(), np.uint8, offset=offset).copy()
    pixels = torch.from_numpy(content("images-idx3", 16)).view(-1, 1, 28, 28)[:count].float() / 255
    return pixels, torch.from_numpy(content("labels-idx1", 8))[:count].long()


def make_net(width, depth):
    layers = [nn.Flatten()]
    for i in range(depth):
        layers += [nn.Linear(784 if i == 0 else width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


@torch.no_grad()
def error_of(net, images, labels):
    right = sum((net(x).argmax(1) == y).sum().item() for x, y in zip(images.split(500), labels.split(500)))
    return 1 - right / len(labels)


@torch.no_grad()
def latency_ms(net, images):
    rounds = []
    for _ in range(ROUNDS):
        times = []
        for i in range(CALLS):
            begun = time.perf_counter()
            net(images[i:i + 1])
            times.append(1e3 * (time.perf_counter() - begun))
        rounds.append(statistics.median(times))
    return min(rounds)


def train(width, depth, lr, train_set, test_set):
    torch.manual_seed(1000 * width + 10 * depth)
    images, labels = train_set
    net = make_net(width, depth)
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    errors, seconds = [], []
    for _ in range(EPOCHS):
        begun = time.process_time()
        for rows in torch.randperm(len(labels)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[rows]), labels[rows]).backward()
            optimizer.step()
        seconds.append(time.process_time() - begun)
        errors.append(round(error_of(net, *test_set), 4))
    return {"parameters": sum(p.numel() for p in net.parameters()), "latency_ms": round(latency_ms(net, images), 4),
            "epoch_s": round(statistics.median(seconds), 4), "errors": errors}


def main():
    torch.set_num_threads(1)
    path = pathlib.Path(sys.argv[1])
    train_set, test_set = read("train", SAMPLES), read("t10k", HELD_OUT)
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(net["width"], net["depth"], net["lr"]) for net in done}
    with path.open("a") as out:
        for width, depth, lr in itertools.product(WIDTHS, DEPTHS, RATES):
            if (width, depth, lr) not in known:
                net = {"width": width, "depth": depth, "lr": lr} | train(width, depth, lr, train_set, test_set)
                print(json.dumps(net), file=out, flush=True)


if __name__ == "__main__":
    main()
