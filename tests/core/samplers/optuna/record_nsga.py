#!/usr/bin/env python3
"""Asks Optuna's own functions for fronts, hypervolumes and populations, and writes down what they answer: nsga.txt,
which fronts_test.cc and nsga_test.cc hold ours to.

    python3 tests/core/samplers/optuna/record_nsga.py     # with Optuna 5.0.0

A line is a name and numbers. Tables are written row by row.
"""
import pathlib

import numpy as np
import optuna
from optuna._hypervolume import _solve_hssp, compute_hypervolume
from optuna.samplers.nsgaii._elite_population_selection_strategy import _calc_crowding_distance
from optuna.study._multi_objective import _fast_non_domination_rank, _is_pareto_front

SEED = 2026
ROWS = 40


def written(numbers):
    return " ".join(repr(float(x)) for x in np.asarray(numbers, dtype=float).reshape(-1))


class Record:
    def __init__(self):
        self.lines = [f"# Optuna {optuna.__version__}, NumPy {np.__version__}: record_nsga.py"]

    def add(self, name, numbers):
        self.lines.append(f"{name} {written(numbers)}".rstrip())


def trials_of(losses, constraints=None):
    return [
        optuna.trial.FrozenTrial(
            number=i, trial_id=i, state=optuna.trial.TrialState.COMPLETE, value=None, values=list(row),
            datetime_start=None, datetime_complete=None, params={}, distributions={}, user_attrs={},
            system_attrs={} if constraints is None else {"constraints": list(constraints[i])},
            intermediate_values={})
        for i, row in enumerate(losses)]


def record_fronts(record, rng):
    for objectives in (1, 2, 3, 4):
        losses = np.round(rng.uniform(size=(ROWS, objectives)), 1)  # with equal values, and equal rows
        losses[ROWS // 2:ROWS // 2 + 3] = losses[:3]
        losses[5, 0] = np.inf
        penalty = np.maximum(0, np.round(rng.normal(size=ROWS), 1))
        name = f"fronts.{objectives}"
        record.add(f"{name}.losses", losses)
        record.add(f"{name}.violations", penalty)
        record.add(f"{name}.numbers", _fast_non_domination_rank(losses))
        record.add(f"{name}.constrained", _fast_non_domination_rank(losses, penalty=penalty))
        record.add(f"{name}.front", np.flatnonzero(_is_pareto_front(losses, assume_unique_lexsorted=False)))
        distances = _calc_crowding_distance(trials_of(losses))
        record.add(f"{name}.crowding", [distances[i] for i in range(ROWS)])


def record_volumes(record, rng):
    for objectives in (2, 3, 4, 5):
        losses = np.abs(rng.normal(size=(ROWS, objectives)))
        losses /= np.linalg.norm(losses, axis=1, keepdims=True)  # all on one front
        losses[ROWS - 5:] += rng.uniform(size=(5, objectives))   # but these
        reference = np.full(objectives, 2.1)
        name = f"volume.{objectives}"
        record.add(f"{name}.losses", losses)
        record.add(f"{name}.reference", reference)
        record.add(f"{name}.volume", [compute_hypervolume(losses, reference)])
        on_front = losses[:ROWS - 5]
        record.add(f"{name}.subset", _solve_hssp(on_front, np.arange(len(on_front)), 12, reference))


def main():
    record = Record()
    rng = np.random.RandomState(SEED)
    record_fronts(record, rng)
    record_volumes(record, rng)
    pathlib.Path(__file__).with_name("nsga.txt").write_text("\n".join(record.lines) + "\n")


if __name__ == "__main__":
    main()
