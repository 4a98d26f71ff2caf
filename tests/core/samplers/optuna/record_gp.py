#!/usr/bin/env python3
"""Asks Optuna's own Gaussian process for likelihoods, posteriors and acquisition functions, and writes down what it
answers: gp.txt, which gp_optuna_test.cc holds ours to.

    python3 tests/core/samplers/optuna/record_gp.py     # with Optuna 5.0.0, SciPy and PyTorch

A line is a name and numbers. Tables are written row by row. The kernel's parameters are written as inverse squared
lengths, scale, noise.
"""
import pathlib
import warnings

import numpy as np
import optuna
import scipy
import torch
from optuna._gp import acqf, gp, prior, search_space
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

SEED = 2026
DRAWS = 16
SPACE = search_space.SearchSpace({
    "a": FloatDistribution(0, 1), "b": FloatDistribution(1e-4, 1, log=True), "c": FloatDistribution(-2, 2),
    "d": IntDistribution(1, 8), "e": CategoricalDistribution(["p", "q", "r"])})
AXES = 5
OPTIONS = 3


def written(numbers):
    return " ".join(repr(float(x)) for x in np.asarray(numbers, dtype=float).reshape(-1))


class Record:
    def __init__(self):
        self.lines = [f"# Optuna {optuna.__version__}, SciPy {scipy.__version__}, PyTorch {torch.__version__}: record_gp.py"]

    def add(self, name, numbers):
        self.lines.append(f"{name} {written(numbers)}".rstrip())


def points(rng, count):
    """On the model's axes, with few digits so that the file stays small."""
    x = np.round(rng.uniform(size=(count, AXES)), 3)
    x[:, 3] = (rng.integers(8, size=count) + 0.5) / 8
    x[:, 4] = rng.integers(OPTIONS, size=count)
    return x


def standardised(y):
    return np.round((y - y.mean(axis=0)) / y.std(axis=0), 4)


def objectives(rng, x):
    """Three, that are at odds, with a little noise."""
    bowl = ((x[:, :4] - 0.3) ** 2).sum(axis=1) + 0.2 * (x[:, 4] == 1)
    other = ((x[:, :4] - 0.7) ** 2).sum(axis=1) + 0.1 * x[:, 4]
    wave = np.sin(6 * x[:, 0]) + x[:, 1] * x[:, 2]
    return standardised(-np.stack([bowl, other, wave], axis=1) + 0.01 * rng.normal(size=(len(x), 3)))


def regressor(x, y, parameters):
    made = gp.GPRegressor(
        torch.from_numpy(SPACE.is_categorical), torch.from_numpy(x), torch.from_numpy(np.ascontiguousarray(y)),
        *(torch.tensor(p, dtype=torch.float64) for p in (parameters[:-2], parameters[-2], parameters[-1])))
    likelihood = made.marginal_log_likelihood().item(), prior.default_log_prior(made).item()
    made._cache_matrix()
    return made, likelihood


def parameters_of(made):
    return np.concatenate([made.inverse_squared_lengthscales.numpy(), [made.kernel_scale.item(), made.noise_var.item()]])


def add_acquisition(record, name, function, at):
    values, gradients = zip(*(function.eval_acqf_with_grad(point) for point in at))
    record.add(f"{name}.values", values)
    record.add(f"{name}.gradients", np.array(gradients))


def record_history(record, rng, count):
    name = f"history{count}"
    x, at, running = points(rng, count), points(rng, 12), points(rng, 3)
    y = objectives(rng, x)
    for key, table in (("points", x), ("values", y), ("at", at), ("running", running)):
        record.add(f"{name}.{key}", table)
    parameters = [np.round(np.concatenate([rng.uniform(0.2, 6, size=AXES), [rng.uniform(0.5, 2), noise]]), 3)
                  for noise in (1e-2, 3e-2, 2e-2)]
    models = []
    for k in range(3):
        record.add(f"{name}.parameters{k}", parameters[k])
        model, likelihood = regressor(x, y[:, k], parameters[k])
        models.append(model)
        record.add(f"{name}.likelihood{k}", likelihood)
        mean, variance = model.posterior(torch.from_numpy(at))
        record.add(f"{name}.mean{k}", mean.numpy())
        record.add(f"{name}.variance{k}", variance.numpy())
    for deterministic in (False, True):
        fitted = gp.fit_kernel_params(x, np.ascontiguousarray(y[:, 0]), SPACE.is_categorical, prior.default_log_prior,
                                      prior.DEFAULT_MINIMUM_NOISE_VAR, deterministic)
        known = parameters_of(fitted)
        record.add(f"{name}.fitted.{'deterministic' if deterministic else 'noisy'}", known)
    best = y[:, 0].max()
    # The second and third as constraints.
    thresholds = [0.2, -0.3]
    common = dict(search_space=SPACE, threshold=best)
    add_acquisition(record, f"{name}.logei", acqf.LogEI(models[0], **common), at)
    add_acquisition(record, f"{name}.logpi", acqf.LogPI(models[1], SPACE, thresholds[0]), at)
    add_acquisition(record, f"{name}.logcei", acqf.LogCEI(
        models[0], constraints_gpr_list=models[1:], constraints_threshold_list=thresholds, **common), at)
    batch = dict(n_qmc_samples=DRAWS, qmc_seed=7)
    with_running = dict(normalized_params_of_running_trials=running, **batch)
    add_acquisition(record, f"{name}.qlogei", acqf.qLogEI(models[0], **common, **with_running), at)
    add_acquisition(record, f"{name}.qlogcei", acqf.qLogCEI(
        models[0], **common, **with_running, constraints_gpr_list=models[1:], constraints_threshold_list=thresholds), at)
    for objective_count in (2, 3):
        values = torch.from_numpy(np.ascontiguousarray(y[:, :objective_count]))
        several = models[:objective_count], SPACE, values
        add_acquisition(record, f"{name}.logehvi{objective_count}", acqf.LogEHVI(*several, **batch), at)
        add_acquisition(record, f"{name}.qlogehvi{objective_count}", acqf.qLogEHVI(*several, **with_running), at)
    constrained = dict(constraints_gpr_list=models[2:], constraints_threshold_list=thresholds[1:])
    several = models[:2], SPACE, torch.from_numpy(np.ascontiguousarray(y[:count // 2, :2]))
    add_acquisition(record, f"{name}.logcehvi", acqf.LogCEHVI(*several, **batch, **constrained), at)
    add_acquisition(record, f"{name}.qlogcehvi", acqf.qLogCEHVI(*several, **with_running, **constrained), at)


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    record = Record()
    rng = np.random.default_rng(SEED)
    for dimension in (2, 3):
        record.add(f"normals{dimension}.7", gp.sample_from_normal_sobol(dimension, DRAWS, 7))
    for seed in (7, 8, 9, 10):
        record.add(f"normals4.{seed}", gp.sample_from_normal_sobol(4, DRAWS, seed))
    for count in (15, 50, 200):
        record_history(record, rng, count)
    pathlib.Path(__file__).with_name("gp.txt").write_text("\n".join(record.lines) + "\n")


if __name__ == "__main__":
    main()
