"""What Optuna's RegretBoundEvaluator and EMMREvaluator say, and when Terminator ends studies by them: what ours are held to.

    python3 tests/core/samplers/optuna/record_regret.py     # writes regret.txt, with Optuna 5.0.0, SciPy and PyTorch

A line is a name and numbers; tables are written row by row.

bounds*: points on the model's axes with standardised values, the kernels' parameters (inverse squared lengths, scale,
noise) without the last trial and with it, the points that the bounds look at beside those, and the bounds for two deltas.
Kernels and points are given here, so that the bounds follow from them alone.

study*: trials one after another, of a study with uniform parameters in [0, 1]: parameters, value and standard error by
cross-validation in a row; the bounds after some numbers of trials; an error and a part of the median that are given; and
after how many trials the terminator ended the study (-1: it did not): by the errors of the best trials, by the given
error, and by EMMR with the part of the median.
"""
import pathlib
import types
import warnings

import numpy as np
import optuna
import scipy
import torch
from optuna._gp import gp, search_space
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.terminator import (CrossValidationErrorEvaluator, EMMREvaluator, MedianErrorEvaluator, RegretBoundEvaluator,
                               StaticErrorEvaluator, Terminator, report_cross_validation_scores)
from optuna.terminator.improvement import emmr, evaluator

SEED = 2026
DRAWN = 64
AXES = 3
SPACE = {"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1), "c": CategoricalDistribution(["p", "q", "r"])}
TRIALS = 60
FOLDS = 5
BOUNDS_AFTER = (20, 30, 45, 60)


def written(numbers):
    return " ".join(f"{float(x):.10g}" for x in np.asarray(numbers, dtype=float).reshape(-1))


class Record:
    def __init__(self):
        self.lines = [f"# Optuna {optuna.__version__}, SciPy {scipy.__version__}, PyTorch {torch.__version__}: record_regret.py"]

    def add(self, name, numbers):
        self.lines.append(f"{name} {written(numbers)}".rstrip())


def points(rng, count):
    x = np.round(rng.uniform(size=(count, AXES)), 3)
    x[:, 2] = rng.integers(3, size=count)
    return x


def regressor(x, y, parameters):
    made = gp.GPRegressor(
        torch.tensor([False, False, True]), torch.from_numpy(x), torch.from_numpy(np.ascontiguousarray(y)),
        *(torch.tensor(p, dtype=torch.float64) for p in (parameters[:-2], parameters[-2], parameters[-1])))
    made._cache_matrix()
    return made


def complete(x, y):
    return [optuna.trial.create_trial(value=float(value), distributions=SPACE,
                                      params={"a": a, "b": b, "c": ["p", "q", "r"][int(c)]})
            for (a, b, c), value in zip(x, y)]


def add_bounds(record, rng, count):
    """Of a history whose best trial is in the middle, and of one whose last trial is the best."""
    name = f"bounds{count}"
    x, drawn = points(rng, count), points(rng, DRAWN)
    y = -((x[:, :2] - 0.3) ** 2).sum(axis=1) - 0.2 * (x[:, 2] == 1) + 0.01 * rng.normal(size=count)
    if count % 2:
        y[-1] = y.max() + 0.05
    y = np.round((y - y.mean()) / y.std(), 4)
    y = (y - y.mean()) / y.std()
    kernels = [np.round(np.concatenate([rng.uniform(0.2, 6, size=AXES), [rng.uniform(0.5, 2), noise]]), 3)
               for noise in (1e-2, 2e-2)]
    for key, table in (("points", x), ("values", y), ("before", kernels[0]), ("after", kernels[1]), ("drawn", drawn)):
        record.add(f"{name}.{key}", table)
    space = search_space.SearchSpace(SPACE)
    space.sample_normalized_params = lambda n, rng: drawn
    for delta in (0.1, 0.01):
        regret = evaluator._compute_standardized_regret_bound(regressor(x, y, kernels[1]), space, x, y, delta)
        record.add(f"{name}.regret.{delta}", [regret])
        with Given(iter(kernels), space):
            change = EMMREvaluator(delta=delta).evaluate(complete(x, y), optuna.study.StudyDirection.MAXIMIZE)
        record.add(f"{name}.change.{delta}", [change])


class Given:
    """EMMREvaluator with kernels that are given, and a space whose drawn points are."""

    def __init__(self, kernels, space):
        self.kernels, self.space = kernels, space

    def __enter__(self):
        self.before = emmr.gp, emmr.gp_search_space
        emmr.gp = types.SimpleNamespace(fit_kernel_params=lambda X, Y, **_: regressor(X, Y, next(self.kernels)),
                                        warn_and_convert_inf=gp.warn_and_convert_inf)
        emmr.gp_search_space = types.SimpleNamespace(SearchSpace=lambda _: self.space)

    def __exit__(self, *_):
        emmr.gp, emmr.gp_search_space = self.before


def bowl(x):
    return float(((x - 0.4) ** 2).sum())


def hills(x):
    return float(1 - np.sin(5 * x[0]) * x[1] + (x[0] - x[1]) ** 2)


def study_of(function, axes, direction, sampler, noise, scatter, rng):
    """Trials whose scores of the folds scatter, and whose values do, less."""
    sign = -1 if direction == "maximize" else 1
    study = optuna.create_study(direction=direction, sampler=sampler)
    rows = []
    for _ in range(TRIALS):
        trial = study.ask()
        x = np.round([trial.suggest_float(f"x{i}", 0, 1) for i in range(axes)], 4)
        value = float(np.round(sign * function(x) + noise * rng.normal(), 6))
        scores = np.round(value + scatter * rng.normal(size=FOLDS), 5)
        report_cross_validation_scores(trial, scores.tolist())
        study.tell(trial, value)
        error = np.sqrt((1 / FOLDS + 1 / (FOLDS - 1)) * np.var(scores))
        rows.append([*x, value, error])
    return study, rows


def prefix(study, rows, axes, count):
    """A study of the first trials, with the parameters as they are written."""
    copy = optuna.create_study(direction=study.direction.name.lower())
    for trial, row in zip(study.trials[:count], rows):
        params = {f"x{i}": float(row[i]) for i in range(axes)}
        copy.add_trial(optuna.trial.create_trial(
            value=trial.value, params=params, system_attrs=trial.system_attrs,
            distributions={name: FloatDistribution(0, 1) for name in params}))
    return copy


def ends_after(copies, terminator):
    return next((count for count, copy in copies.items() if terminator.should_terminate(copy)), -1)


def add_study(record, name, axes, made, error, ratio):
    study, rows = made
    record.add(f"{name}.trials", rows)
    copies = {count: prefix(study, rows, axes, count) for count in range(1, TRIALS + 1)}
    regrets, changes = [], []
    for count in BOUNDS_AFTER:
        trials = copies[count].trials, copies[count].direction
        regrets.append(RegretBoundEvaluator(seed=1).evaluate(*trials))
        changes.append(EMMREvaluator(seed=1).evaluate(*trials))
    record.add(f"{name}.regret", regrets)
    record.add(f"{name}.change", changes)
    record.add(f"{name}.given", [error, ratio])
    by_change = EMMREvaluator(seed=1)
    record.add(f"{name}.ends", [
        ends_after(copies, Terminator(RegretBoundEvaluator(seed=1), CrossValidationErrorEvaluator())),
        ends_after(copies, Terminator(RegretBoundEvaluator(seed=1), StaticErrorEvaluator(error))),
        ends_after(copies, Terminator(by_change, MedianErrorEvaluator(by_change, threshold_ratio=ratio)))])


def main():
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    torch.set_num_threads(1)
    record = Record()
    rng = np.random.default_rng(SEED)
    for count in (20, 41):
        add_bounds(record, rng, count)
    tpe, gps, random = optuna.samplers.TPESampler, optuna.samplers.GPSampler, optuna.samplers.RandomSampler
    for name, function, axes, direction, sampler, noise, scatter, error, ratio in (
            ("study0", bowl, 2, "minimize", tpe(seed=1), 0.01, 0.05, 0.035, 0.1),
            ("study1", bowl, 3, "maximize", random(seed=2), 0.05, 0.2, 0.1, 0.4),
            ("study2", hills, 2, "maximize", gps(seed=3), 0.02, 0.04, 0.03, 0.05),
            ("study3", hills, 2, "minimize", tpe(seed=4), 0.1, 0.4, 0.25, 0.3)):
        made = study_of(function, axes, direction, sampler, noise, scatter, rng)
        add_study(record, name, axes, made, error, ratio)
        print(record.lines[-4:], flush=True)
    pathlib.Path(__file__).with_name("regret.txt").write_text("\n".join(record.lines) + "\n")


if __name__ == "__main__":
    main()
