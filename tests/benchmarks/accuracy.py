#!/usr/bin/env python3
# bench: accuracy - final accuracy of the Fashion-MNIST example on one replica, on two, and on a randomly changing number, same seeds
# builds: tuner fashion_mnist
"""The global batch is fixed, so the number of replicas should not matter: the means over the seeds are
to lie within 0.5 points of each other. Accuracy is that on the validation images after the last
epoch."""
import gzip
import json
import os
import pathlib
import random
import statistics
import tempfile
import time

from bench_run import BIN, SMOKE, usual_or_smoke
from elastic_pool import STUDY, start_study

SEEDS, EPOCHS, MOST = usual_or_smoke(((1, 2, 3, 4, 5), 3, 3), ((1,), 1, 2))
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
SMOKE_IMAGES = 6000  # of which 5000 are for validation
CHANGE_EVERY_S = (0.5, 3.0)


def fewer_images(folder):
    """The first SMOKE_IMAGES of the training images and labels, in a folder of their own."""
    for name, header in (("train-images-idx3-ubyte.gz", 16), ("train-labels-idx1-ubyte.gz", 8)):
        with gzip.open(DATA / name) as file:
            data = file.read()
        count = int.from_bytes(data[4:8], "big")
        wanted = header + (len(data) - header) // count * SMOKE_IMAGES
        with gzip.open(pathlib.Path(folder) / name, "wb", compresslevel=1) as file:
            file.write(data[:4] + SMOKE_IMAGES.to_bytes(4, "big") + data[8:wanted])
    return folder


def in_cpp():
    """The example's program, and what its environment has besides."""
    return [os.path.join(BIN, "fashion_mnist")], {}


def study(command, seed, low, high, data):
    def always(value):
        return {"_type": "choice", "_value": [value]}
    return {"command": [*command, "--epochs", str(EPOCHS), "--data", str(data)],
            "metric": {"name": "accuracy", "direction": "maximize"}, "slots": {"min": low, "max": high},
            "search_space": {"seed": always(seed), "lr": always(0.01), "batch_size": always(128)}}


def accuracy(program, data, seed, low, high, change):
    """Final accuracy, and how often the number of replicas changed."""
    draw = random.Random(seed)
    changes = 0
    command, environment = program()
    with start_study(study(command, seed, low, high, data), slots=high, environment=environment) as pool:
        due = time.monotonic()
        while (trial := pool.trial()).get("state") != "TRIAL_COMPLETE":
            assert trial.get("state") != "TRIAL_FAIL", trial
            if change and trial and time.monotonic() >= due:
                pool.tuner("pin", STUDY, 0, "--slots", draw.randint(1, MOST))
                changes += 1
                due = time.monotonic() + draw.uniform(*CHANGE_EVERY_S)
            time.sleep(0.1)
        return 100 * trial["value"], changes


def main(program=in_cpp):
    with tempfile.TemporaryDirectory() as folder:
        compare(program, fewer_images(folder) if SMOKE else DATA)


def compare(program, data):
    ways = {"one": (1, 1, False), "two": (2, 2, False), "changing": (1, MOST, True)}
    found = {way: [] for way in ways}
    resizes = 0
    for seed in SEEDS:
        for way, arguments in ways.items():
            value, changes = accuracy(program, data, seed, *arguments)
            found[way].append(value)
            resizes += changes
            print(f"seed {seed}, {way}: {value:.2f} %" + (f", {changes} changes asked for" if changes else ""),
                  flush=True)
    means = {way: statistics.mean(values) for way, values in found.items()}
    print(json.dumps({way: round(mean, 2) for way, mean in means.items()} | {
        "spread_points": round(max(means.values()) - min(means.values()), 2),
        "deviation_between_seeds": None if len(SEEDS) == 1
        else round(statistics.mean(statistics.stdev(v) for v in found.values()), 2),
        "changes": resizes, "seeds": len(SEEDS), "epochs": EPOCHS}))


if __name__ == "__main__":
    main()
