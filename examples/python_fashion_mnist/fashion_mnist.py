"""Trains a small convolutional net on Fashion-MNIST as an elastic trial, in plain PyTorch.

    python3 fashion_mnist.py [--epochs N] [--samples N] [--set name=value ...]   alone
    tuner run study.json --slots 2                                              under the tuner
"""
import argparse
import gzip
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import TensorDataset

import espalier
import espalier.torch as adl

DATA = "/usr/share/datasets/fashion-mnist"
VALIDATION_IMAGES = 5000


def read_images(folder, part):
    """The images, [n, 1, 28, 28] between 0 and 1, and their labels, [n]."""
    def content(kind, offset):
        with gzip.open(pathlib.Path(folder) / f"{part}-{kind}-ubyte.gz") as file:
            return np.frombuffer(file.read(), np.uint8, offset=offset).copy()
    pixels = torch.from_numpy(content("images-idx3", 16)).view(-1, 1, 28, 28).float() / 255
    return pixels, torch.from_numpy(content("labels-idx1", 8)).long()


def make_net(width, dropout):
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, width, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(width, 2 * width, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Dropout(dropout), torch.nn.Linear(2 * width * 49, 10))


def main():
    trial = espalier.trial()                                # first: it takes each --set from the command line
    parser = argparse.ArgumentParser(epilog="--set NAME=VALUE gives a parameter, where there is no tuner.")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=55000, help="of the training images")
    parser.add_argument("--data", default=DATA)
    arguments = trial.arguments(parser.parse_args())        # a study may sweep these as well

    torch.manual_seed(trial.seed)
    pixels, labels = read_images(arguments.data, "train")
    training = TensorDataset(pixels[:arguments.samples], labels[:arguments.samples])
    validation = TensorDataset(pixels[-VALIDATION_IMAGES:], labels[-VALIDATION_IMAGES:])

    net = make_net(trial.get("width", 8), trial.get("dropout", 0.1)).to(trial.device)
    optimizer = torch.optim.SGD(net.parameters(), lr=trial.get("lr", 0.02), momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, arguments.epochs)
    model = adl.AdaptiveDataParallel(net, optimizer, schedule, scaling_rule=trial.get("scaling_rule", "adascale"),
                                     base_batch_size=64)
    loader = adl.AdaptiveDataLoader(training, batch_size=trial.get("batch_size", 128), shuffle=True)
    held_out = adl.AdaptiveDataLoader(validation, batch_size=500)
    seen = adl.Accumulator()

    for epoch in adl.epochs(arguments.epochs):              # joins the group; goes on where that is
        model.train()
        for images, classes in loader:                      # replicas come and go here
            scores = model(images.to(trial.device))
            F.cross_entropy(scores, classes.to(trial.device)).backward()  # gradients are summed up meanwhile
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for images, classes in held_out:                # cut over the replicas
                guesses = model(images.to(trial.device)).argmax(1).cpu()
                seen["correct"] += (guesses == classes).sum().item()
        with seen.synchronized():
            accuracy = seen["correct"] / len(validation)
            seen.clear()
        trial.report(epoch, accuracy)
        schedule.step()


if __name__ == "__main__":
    main()
