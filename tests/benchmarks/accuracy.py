#!/usr/bin/env python3
# bench: accuracy - final accuracy of the Fashion-MNIST example on one replica, on two, and on a randomly changing number, same seeds
# builds: tuner fashion_mnist
"""The global batch is fixed, so the number of replicas should not matter: the means over the seeds are
to lie within 0.5 points of each other. Accuracy is that on the validation images after the last
epoch."""
import json
import os
import random
import statistics
import time

from bench_run import BIN
from elastic_pool import STUDY, start_study

SEEDS, EPOCHS, MOST = (1, 2, 3, 4, 5), 3, 3
CHANGE_EVERY_S = (0.5, 3.0)


def study(seed, low, high):
    def always(value):
        return {"_type": "choice", "_value": [value]}
    return {"command": [os.path.join(BIN, "fashion_mnist"), "--epochs", str(EPOCHS)],
            "metric": {"name": "accuracy", "direction": "maximize"}, "slots": {"min": low, "max": high},
            "search_space": {"seed": always(seed), "lr": always(0.01), "batch_size": always(128)}}


def accuracy(seed, low, high, change):
    """Final accuracy, and how often the number of replicas changed."""
    draw = random.Random(seed)
    changes = 0
    with start_study(study(seed, low, high), slots=high) as pool:
        due = time.monotonic()
        while (trial := pool.trial()).get("state") != "TRIAL_COMPLETE":
            assert trial.get("state") != "TRIAL_FAIL", trial
            if change and trial and time.monotonic() >= due:
                pool.tuner("pin", STUDY, 0, "--slots", draw.randint(1, MOST))
                changes += 1
                due = time.monotonic() + draw.uniform(*CHANGE_EVERY_S)
            time.sleep(0.1)
        return 100 * trial["value"], changes


def main():
    ways = {"one": (1, 1, False), "two": (2, 2, False), "changing": (1, MOST, True)}
    found = {way: [] for way in ways}
    resizes = 0
    for seed in SEEDS:
        for way, arguments in ways.items():
            value, changes = accuracy(seed, *arguments)
            found[way].append(value)
            resizes += changes
            print(f"seed {seed}, {way}: {value:.2f} %" + (f", {changes} changes asked for" if changes else ""),
                  flush=True)
    means = {way: statistics.mean(values) for way, values in found.items()}
    print(json.dumps({way: round(mean, 2) for way, mean in means.items()} | {
        "spread_points": round(max(means.values()) - min(means.values()), 2),
        "deviation_between_seeds": round(statistics.mean(statistics.stdev(v) for v in found.values()), 2),
        "changes": resizes, "seeds": len(SEEDS), "epochs": EPOCHS}))


if __name__ == "__main__":
    main()
