#!/usr/bin/env python3
# bench: overhead - time of the adaptive training loop on one replica over that of the plain LibTorch loop, same model, data and batch
# builds: bench_overhead_loop
"""One thread each, in one process and in turns of a second; the median of 7 pairs of 4 seconds. Twice: with
the batch that is the base batch, which one pass over the model takes, and with one of twice the base
batch, which the adaptive loop takes in two microbatches and the plain loop still in one. The
adaptive loop does all it does in a trial: fixed batch, AdaScale, the gradient noise measured."""
import json
import os
import statistics
import subprocess

from bench_run import BIN, usual_or_smoke

PAIRS = usual_or_smoke(7, 1)
MODELS = usual_or_smoke(("convnet", "resnet18"), ("convnet",))
TURN_S = usual_or_smoke(1.0, 0.05)
# A lone replica whose batch is larger than its base batch takes each step in two microbatches.
MODES = {"": 1, "_two_microbatches": 2}


def measure(model, mode, microbatches):
    run = subprocess.run([os.path.join(BIN, "bench_overhead_loop"), model, str(PAIRS), str(TURN_S), str(microbatches)],
                         check=True, stdout=subprocess.PIPE, text=True, env=os.environ | {"ESPALIER_THREADS": "1"})
    pairs = [tuple(map(float, line.split())) for line in run.stdout.splitlines()]
    assert len(pairs) == PAIRS, run.stdout
    for plain, adaptive, plain_cpu, adaptive_cpu in pairs:
        print(f"{model}{mode}: {1000 * plain:.2f} ms a step plain, {1000 * adaptive:.2f} ms adaptive; "
              f"processor time {1000 * plain_cpu:.2f} and {1000 * adaptive_cpu:.2f} ms", flush=True)
    return {f"{model}{mode}_ratio": round(statistics.median(p[1] / p[0] for p in pairs), 4),
            f"{model}{mode}_processor_ratio": round(statistics.median(p[3] / p[2] for p in pairs), 4),
            f"{model}{mode}_plain_ms": round(1000 * statistics.median(p[0] for p in pairs), 2)}


def main():
    figures = {}
    for model in MODELS:
        for mode, microbatches in MODES.items():
            figures |= measure(model, mode, microbatches)
    print(json.dumps(figures | {"pairs": PAIRS, "threads": 1}))


if __name__ == "__main__":
    main()
