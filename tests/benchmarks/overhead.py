#!/usr/bin/env python3
# bench: overhead - time of the adaptive training loop on one replica over that of the plain LibTorch loop, same model, data and batch
# builds: bench_overhead_loop
"""One thread each, in one process and in turns of a second; the median of 7 pairs of 4 seconds. The
adaptive loop does all it does in a trial: fixed batch, AdaScale, the gradient noise measured."""
import json
import os
import statistics
import subprocess

from bench_run import BIN

PAIRS = 7


def main():
    figures = {}
    for model in ("convnet", "resnet18"):
        run = subprocess.run([os.path.join(BIN, "bench_overhead_loop"), model, str(PAIRS)], check=True,
                             stdout=subprocess.PIPE, text=True, env=os.environ | {"ESPALIER_THREADS": "1"})
        pairs = [tuple(map(float, line.split())) for line in run.stdout.splitlines()]
        assert len(pairs) == PAIRS, run.stdout
        for plain, adaptive, plain_cpu, adaptive_cpu in pairs:
            print(f"{model}: {1000 * plain:.2f} ms a step plain, {1000 * adaptive:.2f} ms adaptive; "
                  f"processor time {1000 * plain_cpu:.2f} and {1000 * adaptive_cpu:.2f} ms")
        figures[f"{model}_ratio"] = round(statistics.median(p[1] / p[0] for p in pairs), 4)
        figures[f"{model}_processor_ratio"] = round(statistics.median(p[3] / p[2] for p in pairs), 4)
        figures[f"{model}_plain_ms"] = round(1000 * statistics.median(p[0] for p in pairs), 2)
    print(json.dumps(figures | {"pairs": PAIRS, "threads": 1}))


if __name__ == "__main__":
    main()
