#!/usr/bin/env python3
"""Runs Optuna's NSGA-II and NSGA-III on the problems of front_problems.cc and writes down the hypervolumes that they
reach, by seed: nsga_quality.txt.

    python3 tests/core/samplers/optuna/record_nsga_quality.py     # with Optuna 5.0.0; some minutes

A line is PROBLEM.SAMPLER and a number for each seed.
"""
import math
import pathlib
import warnings

import numpy as np
import optuna
from optuna._hypervolume import compute_hypervolume

TRIALS = 500
SEEDS = 20


def zdt(front, g_of=lambda x: 1 + 9 * sum(x[1:]) / (len(x) - 1), first=lambda x: x[0]):
    def values(x):
        f, g = first(x), g_of(x)
        return f, g * front(f / g, f)
    return values


def zdt4_g(x):
    return 1 + 10 * (len(x) - 1) + sum(v * v - 10 * math.cos(4 * math.pi * v) for v in x[1:])


def bowl(tail):
    return sum((v - 0.5) ** 2 for v in tail)


def many_hills(tail):
    return 100 * (len(tail) + bowl(tail) - sum(math.cos(20 * math.pi * (v - 0.5)) for v in tail))


def plane(x, objectives=3):
    head, g = x[:objectives - 1], many_hills(x[objectives - 1:])
    values = []
    for k in range(objectives):
        value = 0.5 * (1 + g) * math.prod(head[:objectives - 1 - k])
        values.append(value if k == 0 else value * (1 - head[objectives - 1 - k]))
    return values


def sphere(g_of, power=1, objectives=3):
    def values(x):
        angles, g = [v ** power * math.pi / 2 for v in x[:objectives - 1]], g_of(x[objectives - 1:])
        found = []
        for k in range(objectives):
            value = (1 + g) * math.prod(math.cos(a) for a in angles[:objectives - 1 - k])
            found.append(value if k == 0 else value * math.sin(angles[objectives - 1 - k]))
        return found
    return values


def patches(x, objectives=3):
    head, tail = x[:objectives - 1], x[objectives - 1:]
    g = 1 + 9 * sum(tail) / len(tail)
    height = objectives - sum(f / (1 + g) * (1 + math.sin(3 * math.pi * f)) for f in head)
    return [*head, (1 + g) * height]


UNIT = (0, 1)
PROBLEMS = {  # what to minimise, ranges, reference point
    "zdt1": (zdt(lambda r, f: 1 - math.sqrt(r)), [UNIT] * 30, (1.1, 6.5)),
    "zdt2": (zdt(lambda r, f: 1 - r * r), [UNIT] * 30, (1.1, 6.5)),
    "zdt3": (zdt(lambda r, f: 1 - math.sqrt(r) - r * math.sin(10 * math.pi * f)), [UNIT] * 30, (1.1, 6.5)),
    "zdt4": (zdt(lambda r, f: 1 - math.sqrt(r), zdt4_g), [UNIT] + [(-5, 5)] * 9, (1.1, 150)),
    "zdt6": (zdt(lambda r, f: 1 - r * r, lambda x: 1 + 9 * (sum(x[1:]) / (len(x) - 1)) ** 0.25,
                 lambda x: 1 - math.exp(-4 * x[0]) * math.sin(6 * math.pi * x[0]) ** 6), [UNIT] * 10, (1.1, 10)),
    "dtlz1": (plane, [UNIT] * 7, (400, 400, 400)),
    "dtlz2": (sphere(bowl), [UNIT] * 12, (2.5, 2.5, 2.5)),
    "dtlz3": (sphere(many_hills), [UNIT] * 12, (1500, 1500, 1500)),
    "dtlz4": (sphere(bowl, 100), [UNIT] * 12, (2.5, 2.5, 2.5)),
    "dtlz7": (patches, [UNIT] * 22, (1.1, 1.1, 25)),
}
MANY = {name for name, (_, _, reference) in PROBLEMS.items() if len(reference) > 2}  # what NSGA-III is for
SAMPLERS = {"nsga2": optuna.samplers.NSGAIISampler, "nsga3": optuna.samplers.NSGAIIISampler}


def reached(problem, sampler, seed):
    values, ranges, reference = PROBLEMS[problem]
    study = optuna.create_study(directions=["minimize"] * len(reference), sampler=SAMPLERS[sampler](seed=seed))
    study.optimize(lambda t: tuple(values([t.suggest_float(f"x{i}", *r) for i, r in enumerate(ranges)])),
                   n_trials=TRIALS)
    losses = np.array([t.values for t in study.trials])
    return compute_hypervolume(losses[np.all(losses <= reference, axis=1)], np.array(reference, dtype=float))


def main():
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    lines = [f"# Optuna {optuna.__version__}, NumPy {np.__version__}: record_nsga_quality.py, {TRIALS} trials"]
    for sampler, problem in [*(("nsga2", p) for p in PROBLEMS), *(("nsga3", p) for p in PROBLEMS if p in MANY)]:
        values = [format(reached(problem, sampler, seed), ".6g") for seed in range(SEEDS)]
        lines.append(f"{problem}.{sampler} {' '.join(values)}")
        print(lines[-1], flush=True)
    pathlib.Path(__file__).with_name("nsga_quality.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
