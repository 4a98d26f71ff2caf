#!/usr/bin/env python3
# bench: python_overhead - time of an elastic PyTorch loop on one replica over that of the plain loop, same model, data and batch
# builds: espalier_torch
"""One thread, in one process and in turns, whose order alternates; the median over the pairs. The elastic loop does
all that it does in a trial: AdaScale, the gradient noise measured, each sample once an epoch."""
import json
import statistics
import subprocess

from bench_run import torch_python, usual_or_smoke

PAIRS = usual_or_smoke(9, 1)
TURN_S = usual_or_smoke(2.0, 0.02)
MODELS = usual_or_smoke(("small_mlp", "convnet", "resnet18"), ("small_mlp",))


def main():
    figures = {}
    python, environment = torch_python()
    for model in MODELS:
        run = subprocess.run([python, "python_loops.py", model, str(PAIRS), str(TURN_S)], check=True, text=True,
                             stdout=subprocess.PIPE, env=environment)
        pairs = [tuple(map(float, line.split())) for line in run.stdout.splitlines()[1:]]
        assert len(pairs) == PAIRS, run.stdout
        figures |= {f"{model}_ratio": round(statistics.median(p[1] / p[0] for p in pairs), 4),
                    f"{model}_processor_ratio": round(statistics.median(p[3] / p[2] for p in pairs), 4),
                    f"{model}_plain_ms": round(1000 * statistics.median(p[0] for p in pairs), 3),
                    f"{model}_us_per_step": round(1e6 * statistics.median(p[1] - p[0] for p in pairs), 1)}
        print(model, figures[f"{model}_ratio"], flush=True)
    print(json.dumps(figures | {"pairs": PAIRS, "threads": 1}))


if __name__ == "__main__":
    main()
