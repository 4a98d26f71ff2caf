#!/usr/bin/env python3
"""Asks SciPy for points of its sequences, and Optuna for the trials that it makes of them, and writes them down: qmc.txt,
which qmc_test.cc holds ours to.

    python3 tests/core/samplers/optuna/record_qmc.py     # with Optuna 5.0.0 and SciPy

A line is a name and numbers. Tables are written row by row.
"""
import pathlib
import warnings

import numpy as np
import optuna
import scipy
from scipy.stats import qmc

DIMENSIONS = 256
FIRST = 16  # points of the first dimensions
FEW = 10    # dimensions
# Points of all dimensions: of the first two, the Gray code has 11 and 17 bits, all of them set, so that each
# direction number is in one.
FAR = {"sobol": [1365, 87381], "halton": [12345]}
OPTUNA_POINTS = 12


def point(engine, number):
    made = engine(DIMENSIONS, scramble=False)
    made.fast_forward(number)
    return made.random(1)[0]


def objective(trial):
    trial.suggest_float("x", -5, 10)
    trial.suggest_float("lr", 1e-5, 1, log=True)
    trial.suggest_int("depth", 1, 12)
    trial.suggest_categorical("act", [0, 1, 2])
    return 0


def main():
    warnings.filterwarnings("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    lines = [f"# Optuna {optuna.__version__}, SciPy {scipy.__version__}: record_qmc.py"]

    def add(name, numbers):
        lines.append(f"{name} " + " ".join(repr(float(x)) for x in np.asarray(numbers, dtype=float).reshape(-1)))

    for name, engine in (("sobol", qmc.Sobol), ("halton", qmc.Halton)):
        add(f"{name}.first", engine(FEW, scramble=False).random(FIRST))
        for number in FAR[name]:
            add(f"{name}.{number}", point(engine, number))
        # The first trial is drawn by itself, and shows which parameters there are.
        study = optuna.create_study(sampler=optuna.samplers.QMCSampler(qmc_type=name, scramble=False, seed=1))
        study.optimize(objective, n_trials=1 + OPTUNA_POINTS)
        add(f"{name}.trials", [list(trial.params.values()) for trial in study.trials[1:]])
    pathlib.Path(__file__).with_name("qmc.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
