#!/usr/bin/env python3
"""A plain Optuna program, except for two lines: where its studies are, and the slots that a trial runs on.

usage: objective.py HOST:PORT WORKER
"""
import logging
import os
import subprocess
import sys

import espalier_optuna
import optuna

TRIALS = 4  # of each worker
# What a trial trains with: a program of its own, on the slots that it is given.
PROGRAM = "import os, time; time.sleep(0.4 * (1 + int(os.environ['ESPALIER_SLOTS'])))"


def objective(trial):
    width = trial.suggest_int("width", 8, 256, log=True)
    wanted = 2 if width > 64 else 1  # large nets train on two slots
    with espalier_optuna.slots(trial, wanted) as held:
        where = ", ".join(f"{slot.node}/{slot.index}" for slot in held.slots)
        print(f"worker {sys.argv[2]}: trial {trial.number} (width {width}) trains on {where}", flush=True)
        subprocess.run([sys.executable, "-c", PROGRAM], env=dict(os.environ, **held.environment()), check=True)
    return abs(width - 100) / 100


def main():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.basicConfig(level=logging.INFO, format=f"worker {sys.argv[2]}: %(message)s")
    study = optuna.create_study(study_name="optuna", load_if_exists=True, storage=espalier_optuna.storage(sys.argv[1]),
                                sampler=optuna.samplers.RandomSampler(seed=int(sys.argv[2])))
    study.optimize(objective, n_trials=TRIALS)


if __name__ == "__main__":
    main()
