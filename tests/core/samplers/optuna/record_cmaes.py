#!/usr/bin/env python3
"""Tells the optimizers behind Optuna's CmaEsSampler of 200 trials, in the way in which that does, and writes down the
trials and what the optimizers have learnt: cmaes.txt, which cma_es_test.cc holds ours to.

    python3 tests/core/samplers/optuna/record_cmaes.py     # with Optuna 5.0.0 and cmaes 0.13.0

A line is a name and numbers. Tables are written row by row.
"""
import importlib.metadata
import math
import pathlib
import warnings

import cmaes
import numpy as np
import optuna
from optuna._transform import _SearchSpaceTransform
from optuna.distributions import FloatDistribution, IntDistribution

TRIALS = 200
DRAWS = 20_000
DECILES = np.arange(1, 10) / 10
# As cma_es_test.cc has them.
MIXED = {"x": FloatDistribution(-5, 10), "lr": FloatDistribution(1e-5, 1, log=True), "depth": IntDistribution(1, 12),
         "width": IntDistribution(16, 1024, log=True), "drop": FloatDistribution(0, 0.6, step=0.1),
         "y": FloatDistribution(0, 1)}
STEPPED = {"x": FloatDistribution(-5, 10), "lr": FloatDistribution(1e-5, 1, log=True), "depth": IntDistribution(1, 12),
           "flag": IntDistribution(0, 1), "drop": FloatDistribution(0, 0.6, step=0.1)}
PLAIN = {f"x{i}": FloatDistribution(-5, 10) for i in range(4)}


def short(value):
    return float(f"{value:.6g}")


def mixed_loss(p):
    return ((p["x"] - 3) ** 2 / 10 + (math.log10(p["lr"]) + 3) ** 2 + (p["depth"] - 7) ** 2 / 5
            + (math.log2(p["width"]) - 8) ** 2 / 2 + 10 * (p["drop"] - 0.2) ** 2 + (p["y"] - p["drop"]) ** 2)


def stepped_loss(p):
    return ((p["x"] - 3) ** 2 / 10 + (math.log10(p["lr"]) + 3) ** 2 + (p["depth"] - 7) ** 2 / 5 + p["flag"]
            + 10 * (p["drop"] - 0.2) ** 2)


def rosenbrock(p):
    x = np.array(list(p.values()))
    return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


class Record:
    def __init__(self):
        self.lines = [f"# Optuna {optuna.__version__}, cmaes {importlib.metadata.version('cmaes')}, "
                      f"NumPy {np.__version__}: record_cmaes.py"]

    def add(self, name, numbers):
        self.lines.append(f"{name} " + " ".join(repr(float(x)) for x in np.asarray(numbers, dtype=float).reshape(-1)))


def start(bounds, **options):
    """As CmaEsSampler._init_optimizer."""
    mean = bounds[:, 0] + (bounds[:, 1] - bounds[:, 0]) / 2
    return dict(mean=mean, sigma=np.min((bounds[:, 1] - bounds[:, 0]) / 6), bounds=bounds, seed=5,
                n_max_resampling=10 * len(bounds), **options)


def tell_all(optimizer, trans, loss_of):
    params, losses = [], []
    while len(losses) < TRIALS:
        generation = []
        for _ in range(optimizer.population_size):
            told = {name: short(value) for name, value in trans.untransform(optimizer.ask()).items()}
            loss = short(loss_of(told))
            params.append(list(told.values()))
            losses.append(loss)
            generation.append((trans.transform(told), loss))
        optimizer.tell(generation)
    return params, losses


def learnt(record, name, optimizer, covariance):
    record.add(f"{name}.mean", optimizer._mean)
    record.add(f"{name}.sigma", [optimizer._sigma])
    record.add(f"{name}.covariance", covariance)
    draws = np.array([optimizer._sample_solution() for _ in range(DRAWS)])
    record.add(f"{name}.deciles", np.array([[short(q) for q in np.quantile(x, DECILES)] for x in draws.T]))


def record_full(record, name, space, loss_of, **options):
    trans = _SearchSpaceTransform(space, transform_0_1=True)
    optimizer = cmaes.CMA(**start(trans.bounds, **options))
    params, losses = tell_all(optimizer, trans, loss_of)
    record.add(f"{name}.params", params)
    record.add(f"{name}.losses", losses)
    learnt(record, name, optimizer, optimizer._C)


def record_separable(record):
    trans = _SearchSpaceTransform(PLAIN, transform_0_1=True)
    optimizer = cmaes.SepCMA(**start(trans.bounds))
    params, losses = tell_all(optimizer, trans, rosenbrock)
    record.add("separable.params", params)
    record.add("separable.losses", losses)
    learnt(record, "separable", optimizer, np.diag(optimizer._C))


def record_margin(record):
    """What was drawn, too: CMA-ES with margin is told that."""
    trans = _SearchSpaceTransform(STEPPED, transform_step=False, transform_0_1=True)
    steps = np.array([0 if d.step is None or d.log else d.step / (d.high - d.low) for d in STEPPED.values()])
    optimizer = cmaes.CMAwM(**start(trans.bounds), steps=steps)
    params, drawn, losses = [], [], []
    while len(losses) < TRIALS:
        generation = []
        for _ in range(optimizer.population_size):
            encoded, raw = optimizer.ask()
            raw = np.array([short(x) for x in raw])
            told = {name: short(value) for name, value in trans.untransform(encoded).items()}
            losses.append(short(stepped_loss(told)))
            params.append(list(told.values()))
            drawn.append(raw)
            generation.append((raw, losses[-1]))
        optimizer.tell(generation)
    record.add("margin.params", params)
    record.add("margin.drawn", drawn)
    record.add("margin.losses", losses)
    record.add("margin.mean", optimizer._cma._mean)
    record.add("margin.sigma", [optimizer._cma._sigma])
    record.add("margin.covariance", optimizer._cma._C)
    record.add("margin.stretch", optimizer._A)
    # How often each value of each stepped parameter is drawn.
    draws = np.array([optimizer.ask()[0] for _ in range(DRAWS)])
    for i, (name, distribution) in enumerate(STEPPED.items()):
        if steps[i] > 0:
            index = np.round(draws[:, i] / steps[i]).astype(int)
            record.add(f"margin.shares.{name}", [short(x) for x in np.bincount(index, minlength=round(1 / steps[i]) + 1) / DRAWS])


def record_stops(record):
    """After how many generations the optimizer asks to be stopped: where all values are equal, and on a sphere."""
    bounds = np.array([[0.0, 1.0]] * 2)

    def generations(seed, loss_of):
        optimizer = cmaes.CMA(mean=np.full(2, 0.5), sigma=1 / 6, bounds=bounds, seed=seed)
        while not optimizer.should_stop():
            told = [optimizer.ask() for _ in range(optimizer.population_size)]
            optimizer.tell([(x, loss_of(x)) for x in told])
        return optimizer.generation

    record.add("stop.flat", [generations(1, lambda x: 1.0)])
    record.add("stop.sphere", [generations(seed, lambda x: float(((x - 0.4) ** 2).sum())) for seed in range(1, 41)])


def record_warm_start(record):
    rng = np.random.RandomState(7)
    points = np.round(rng.uniform(size=(40, 3)), 4)
    losses = np.round(((points - 0.3) ** 2).sum(1), 6)
    mean, sigma, covariance = cmaes.get_warm_start_mgd(list(zip(points, losses)))
    record.add("warm.points", points[np.argsort(losses, kind="stable")])
    record.add("warm.mean", mean)
    record.add("warm.sigma", [sigma])
    record.add("warm.covariance", covariance)


def main():
    warnings.filterwarnings("ignore")
    record = Record()
    record_full(record, "full", MIXED, mixed_loss)
    record_full(record, "adapted", PLAIN, rosenbrock, lr_adapt=True)
    record_separable(record)
    record_margin(record)
    record_stops(record)
    record_warm_start(record)
    pathlib.Path(__file__).with_name("cmaes.txt").write_text("\n".join(record.lines) + "\n")


if __name__ == "__main__":
    main()
