#!/usr/bin/env python3
"""Asks Optuna's own functions for fronts, hypervolumes and populations, and writes down what they answer: nsga.txt,
which fronts_test.cc and nsga_test.cc hold ours to.

    python3 tests/core/samplers/optuna/record_nsga.py     # with Optuna 5.0.0

A line is a name and numbers. Tables are written row by row.
"""
import pathlib
import warnings

import numpy as np
import optuna
from optuna._hypervolume import _solve_hssp, compute_hypervolume
from optuna.samplers import _nsgaiii as nsga3
from optuna.samplers import nsgaii
from optuna.samplers._lazy_random_state import LazyRandomState
from optuna.samplers.nsgaii._child_generation_strategy import NSGAIIChildGenerationStrategy
from optuna.samplers.nsgaii._elite_population_selection_strategy import _calc_crowding_distance
from optuna.study._multi_objective import _fast_non_domination_rank, _is_pareto_front

SEED = 2026
ROWS = 40


def written(numbers):
    return " ".join(repr(float(x)).removesuffix(".0") for x in np.asarray(numbers, dtype=float).reshape(-1))


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


def record_parents(record, directions, constrained, population_size=20, generations=10):
    """A study as Optuna ran it, and the parents of each of its generations, by their numbers."""
    sampler = optuna.samplers.NSGAIISampler(seed=SEED, population_size=population_size)
    study = optuna.create_study(directions=directions, sampler=sampler)

    def objective(trial):
        x, y, z = (trial.suggest_float(name, 0, 1) for name in "xyz")
        if constrained:
            trial.set_constraint("a", round(x + y - 1.2, 2))
            trial.set_constraint("b", round(0.2 - z, 2))
        values = (x + z * z, (1 - x) ** 2 + y, abs(x - z) + y * z)[:len(directions)]
        return tuple(round(v if d == "minimize" else -v, 2) for v, d in zip(values, directions))

    study.optimize(objective, n_trials=population_size * generations + 1)
    trials = study.trials[:-1]
    name = f"parents.{len(directions)}"
    record.add(f"{name}.values", [t.values for t in trials])
    if constrained:
        record.add(f"{name}.constraints", [list(t.constraints.values()) for t in trials])
    attributes = study._storage.get_study_system_attrs(study._study_id)
    record.add(f"{name}.numbers", [sorted(attributes[f"NSGAIISampler:parent:{g}"])
                                   for g in range(1, generations + 1)])


def record_lines(record, rng):
    """What NSGA-III reckons with, and how often it takes each of a front."""
    strategy = nsga3._elite_population_selection_strategy
    for objectives, divisions in ((2, 5), (3, 3), (4, 2)):
        losses = rng.uniform(size=(ROWS, objectives)) * np.arange(1, objectives + 1)
        losses[ROWS // 2:] += 0.3
        losses[-1, 0] = np.inf
        normalized = strategy._normalize_objective_values(strategy._filter_inf(trials_of(losses)))
        points = strategy._generate_default_reference_point(objectives, divisions)
        closest, distances = strategy._associate_individuals_with_reference_points(normalized, points)
        name = f"lines.{objectives}"
        record.add(f"{name}.losses", losses)
        record.add(f"{name}.points", points)
        record.add(f"{name}.normalized", normalized)
        record.add(f"{name}.closest", closest)
        record.add(f"{name}.distances", distances)
        first, count, rounds = 10, 12, 4000
        taken = np.zeros(ROWS)
        front = trials_of(losses)[first:]
        for seed in range(rounds):
            for trial in strategy._preserve_niche_individuals(
                    count, first, front, closest, distances, np.random.RandomState(seed)):
                taken[trial.number] += 1
        record.add(f"{name}.taken", np.round(taken / rounds, 4))


warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)

CROSSOVERS = {
    "uniform": nsgaii.UniformCrossover(0.3),
    "blx_alpha": nsgaii.BLXAlphaCrossover(),
    "spx": nsgaii.SPXCrossover(),
    "sbx": nsgaii.SBXCrossover(),
    "vsbx": nsgaii.VSBXCrossover(),
    "undx": nsgaii.UNDXCrossover(),
}
SPREADS = {  # whose options are not the default ones
    "blx_alpha.alpha": nsgaii.BLXAlphaCrossover(alpha=1.5),
    "spx.epsilon": nsgaii.SPXCrossover(epsilon=1.2),
    "sbx.eta": nsgaii.SBXCrossover(eta=0.0),
    "sbx.genes": nsgaii.SBXCrossover(eta=0.0, use_child_gene_prob=1.0),
    "sbx.exchange": nsgaii.SBXCrossover(eta=0.0, use_child_gene_prob=1.0, uniform_crossover_prob=0.0),
    "vsbx.eta": nsgaii.VSBXCrossover(eta=4),
    "vsbx.genes": nsgaii.VSBXCrossover(eta=4, use_child_gene_prob=1.0),
    "vsbx.exchange": nsgaii.VSBXCrossover(use_child_gene_prob=1.0, uniform_crossover_prob=0.0),
    "undx.xi": nsgaii.UNDXCrossover(sigma_xi=1.2),
    "undx.eta": nsgaii.UNDXCrossover(sigma_eta=1.0),
}
SPACE = {
    "x": optuna.distributions.FloatDistribution(0, 1),
    "y": optuna.distributions.FloatDistribution(0, 1),
    "z": optuna.distributions.FloatDistribution(0, 1),
    "c": optuna.distributions.CategoricalDistribution(["p", "q", "r"]),
}
GRID = np.round(np.linspace(0.2, 0.8, 31), 2)


def record_children(record, rng, population_size=12, count=6000):
    """Parents in the middle of a space, and how children of theirs are spread: for each parameter, and for sums and
    differences of two, the share of them at or below each point of GRID."""
    study = optuna.create_study(directions=["minimize", "minimize"])
    for _ in range(population_size):
        x, y, z = (round(v, 3) for v in rng.uniform(0.4, 0.6, size=3))
        params = {"x": x, "y": y, "z": z, "c": "pqr"[rng.randint(3)]}
        study.add_trial(optuna.trial.create_trial(
            params=params, distributions=SPACE, values=[round(x + y, 3), round(abs(x - y) + z, 3)]))
    parents = study.trials
    record.add("children.parents", [[t.params["x"], t.params["y"], t.params["z"], "pqr".index(t.params["c"])]
                                    for t in parents])
    record.add("children.values", [t.values for t in parents])
    record.add("children.grid", GRID)
    for name, crossover in CROSSOVERS.items():
        spread_of_children(record, name, study, parents, count, crossover=crossover, mutation_prob=0.0)
    spread_of_children(record, "polynomial", study, parents, count, crossover=nsgaii.UniformCrossover(),
                       mutation_prob=1.0, mutation=nsgaii.PolynomialMutation())
    for name, crossover in SPREADS.items():
        spread_of_children(record, name, study, parents, 4 * count, crossover=crossover, mutation_prob=0.0)
    spread_of_children(record, "polynomial.eta", study, parents, 4 * count, crossover=nsgaii.UniformCrossover(),
                       mutation_prob=1.0, mutation=nsgaii.PolynomialMutation(eta=3.0))


def spread_of_children(record, name, study, parents, count, **options):
    strategy = NSGAIIChildGenerationStrategy(crossover_prob=0.9, swapping_prob=0.3, rng=LazyRandomState(SEED), **options)
    children = [strategy(study, SPACE, parents) for _ in range(count)]
    x, y, z = (np.array([c[key] for c in children]) for key in "xyz")
    for axis, places in {"x": x, "y": y, "z": z, "sum": (x + y) / 2, "difference": (x - y) / 2 + 0.5}.items():
        record.add(f"children.{name}.{axis}", [round(np.mean(places <= g + 1e-9), 4) for g in GRID])
    if "c" in children[0]:
        record.add(f"children.{name}.c", [round(np.mean([c["c"] == option for c in children]), 4) for option in "pqr"])


def main():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    record = Record()
    rng = np.random.RandomState(SEED)
    record_fronts(record, rng)
    record_volumes(record, rng)
    record_parents(record, ["minimize"], False)
    record_parents(record, ["minimize", "maximize"], False)
    record_parents(record, ["minimize", "maximize", "minimize"], True)
    record_lines(record, rng)
    record_children(record, rng)
    pathlib.Path(__file__).with_name("nsga.txt").write_text("\n".join(record.lines) + "\n")


if __name__ == "__main__":
    main()
