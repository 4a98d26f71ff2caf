#!/usr/bin/env python3
# bench: fingerprints - what it costs to compare replicas: processor time of a step with ESPALIER_CHECK_REPLICAS on over off
# builds: tuner bench_fingerprints espalier_torch
"""By which several replicas of a trial compare their state in each step.

In C++ each model is trained by the plain LibTorch loop with one thread, in turns with and without the comparison, in
one process and in 40 pairs: MODEL_share is what the comparison takes by itself, of the processor time of a step without
it (the bar is 0.003), and MODEL_ratio the median over the pairs of a step's with it over one's without (1.005, or its
interval of 95 % holds 1).

In Python each turn is a trial of two replicas with one thread each, in 40 pairs; the figures are rank 0's. Its share is
what the comparison took in C++ of the model of that name, the code being the same, and what asking Python for the
optimizer's state takes, which is done in the first step of each round: spread over its steps."""
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from bench_run import BIN, torch_python, usual_or_smoke

PAIRS = usual_or_smoke(40, 2)
TURN_S = usual_or_smoke(1.0, 0.02)
MODELS = usual_or_smoke(("small_mlp", "convnet", "resnet18"), ("small_mlp",))
# Of a trial in Python, after as many to warm up.
STEPS = usual_or_smoke({"small_mlp": 1000, "convnet": 90, "resnet18": 12}, {"small_mlp": 4})


def interval(ratios):
    """Of their median, to 95 %: by ranks, with no assumption about how they are spread."""
    ordered, n = sorted(ratios), len(ratios)
    low = max(0, int((n - 1.96 * n ** 0.5) / 2) - 1)
    return [round(ordered[low], 4), round(ordered[n - 1 - low], 4)]


def of_ratios(name, off, on):
    ratios = [with_it / without for without, with_it in zip(off, on)]
    return {f"{name}_ratio": round(statistics.median(ratios), 4), f"{name}_interval": interval(ratios)}


def in_cpp(model):
    """The figures, seconds that the comparison takes, and of how many steps one asks the optimizer for its state."""
    run = subprocess.run([os.path.join(BIN, "bench_fingerprints"), model, str(PAIRS), str(TURN_S)], check=True,
                         stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    off, on, comparing, rounds = zip(*(map(float, line.split()) for line in run.stdout.splitlines()))
    assert len(off) == PAIRS, run.stdout
    figures = {f"{model}_share": round(statistics.fmean(comparing) / statistics.fmean(off), 5), **of_ratios(model, off, on)}
    print(f"{model}: {1e6 * statistics.fmean(comparing):.1f} us of {1000 * statistics.fmean(off):.2f} ms;", figures, flush=True)
    return figures, statistics.fmean(comparing), rounds[0]


def in_python(model, comparing_s, rounds):
    python, environment = torch_python()
    turns = {"on": [], "off": []}
    with tempfile.TemporaryDirectory(prefix="espalier-bench-") as folder:
        for pair in range(PAIRS):
            for mode in ("off", "on") if pair % 2 == 0 else ("on", "off"):
                file = pathlib.Path(folder, f"{mode}{pair}")
                study = {"name": "turn", "command": [python, str(pathlib.Path("fingerprints_trial.py").resolve()), model,
                                                     str(STEPS[model]), str(file)],
                         "search_space": {"none": {"_type": "choice", "_value": [0]}}, "trials": 1, "sampler": "random",
                         "policy": "fixed", "slots": {"min": 2, "max": 2}, "metric": {"name": "loss", "direction": "minimize"}}
                pathlib.Path(folder, "study.json").write_text(json.dumps(study), encoding="utf-8")
                subprocess.run([os.path.join(BIN, "tuner"), "run", "study.json", "--slots", "2", "--fresh"], cwd=folder, check=True,
                               stdout=subprocess.DEVNULL, env=environment | {"ESPALIER_CHECK_REPLICAS": mode})
                turns[mode].append(json.loads(file.read_text(encoding="utf-8")))
    name = f"python_{model}"
    off, on = ([turn["step_s"] for turn in turns[mode]] for mode in ("off", "on"))
    asked = statistics.median(turn["asked_s"] for turn in turns["on"]) / rounds
    takes = comparing_s + asked
    figures = {f"{name}_share": round(takes / statistics.median(off), 5), **of_ratios(name, off, on)}
    print(f"{name}: {1e6 * takes:.1f} us, {1e6 * asked:.1f} of them in Python, of {1000 * statistics.median(off):.2f} ms;", figures,
          flush=True)
    return figures


def main():
    figures, measured = {}, {}
    for model in MODELS:
        of_model, *measured[model] = in_cpp(model)
        figures |= of_model
    for model in MODELS:
        figures |= in_python(model, *measured[model])
    print(json.dumps(figures | {"pairs": PAIRS, "threads": 1}))


if __name__ == "__main__":
    main()
