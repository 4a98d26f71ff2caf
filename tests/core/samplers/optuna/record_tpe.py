#!/usr/bin/env python3
"""Hands Optuna's TPESampler studies of 200 trials and writes down how it splits them and what densities it makes of
them: tpe.txt, which tpe_optuna_test.cc holds ours to.

    python3 tests/core/samplers/optuna/record_tpe.py     # with Optuna 5.0.0

A line is a name and numbers. Parameters are as Optuna holds them, options by number; nan: the trial has none. Densities
are those on the axes as they are, in the logarithm where draws are uniform in that, times the widths of the continuous
ones: the interval from 0 to 1 that ours are on.
"""
import math
import pathlib
import warnings

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import TPESampler
from optuna.samplers._tpe import sampler as tpe
from optuna.trial import TrialState, create_trial

TRIALS = 200
POINTS = 12
RUNNING = 15  # the newest

ALWAYS = {
    "u": FloatDistribution(-5, 10),
    "l": FloatDistribution(1e-5, 1, log=True),
    "i": IntDistribution(0, 19),
    "s": IntDistribution(2, 20, step=3),
    "q": FloatDistribution(0, 2, step=0.25),
    "w": IntDistribution(1, 200, log=True),
    "m": IntDistribution(0, 999999),
    "c": CategoricalDistribution(["x", "y", "z", "zz"]),
    "n": CategoricalDistribution(["A", "B"]),
}
OF_OPTION = {"A": {"p": FloatDistribution(0, 1)},
             "B": {"b": IntDistribution(1, 8), "k": CategoricalDistribution(["r", "t", "v"])}}
SPACE = {**ALWAYS, **OF_OPTION["A"], **OF_OPTION["B"]}


def stable_argsort(argsort):
    """Equal places are told apart by the age of the trials, and not by how NumPy sorts on this machine."""
    return lambda a, axis=-1, kind=None, **more: argsort(a, axis=axis, kind="stable", **more)


class Recording(TPESampler):
    def _build_parzen_estimator(self, study, search_space, trials, handle_below):
        built = super()._build_parzen_estimator(study, search_space, trials, handle_below)
        self.built = (self.built if not handle_below else []) + [(built, [t.number for t in trials])]
        return built


def draw(rng, distribution):
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[rng.integers(len(distribution.choices))]
    low, high, step = distribution.low, distribution.high, distribution.step
    if distribution.log:
        x = math.exp(rng.uniform(math.log(low), math.log(high)))
        return round(x) if isinstance(distribution, IntDistribution) else float(f"{x:.6g}")
    if step is None:
        return round(float(rng.uniform(low, high)), 6)
    return type(low)(low + step * int(rng.integers(round((high - low) / step) + 1)))


def parameters(rng, number):
    names = dict(ALWAYS)
    params = {name: draw(rng, distribution) for name, distribution in ALWAYS.items()}
    if number % 7 == 3:  # as later trials come to be: close to one another
        params["u"], params["i"], params["c"] = round(2.5 + 0.01 * float(rng.normal()), 6), 7, "y"
    of_option = OF_OPTION[params["n"]]
    names |= of_option
    return params | {name: draw(rng, d) for name, d in of_option.items()}, names


def values_of(rng, params, objectives):
    x = (params["u"] - 3) / 10
    cost = abs(math.log10(params["l"]) + 3) + 0.05 * params["i"]
    all_values = (x * x + 0.2 * cost + (0.1 if params["c"] == "y" else 0.4), -x + 0.01 * params["w"] ** 0.5,
                  cost - params.get("p", 0.5))
    return [round(float(v + 0.1 * rng.normal()), 2) for v in all_values[:objectives]]  # with equal ones


def history(seed, objectives, constrained):
    rng = np.random.default_rng(seed)
    trials = []
    for number in range(TRIALS):
        params, names = parameters(rng, number)
        values = values_of(rng, params, objectives)
        made = dict(params=params, distributions=names, state=TrialState.COMPLETE, values=values)
        kind = rng.integers(10)
        if number >= TRIALS - RUNNING:
            made |= dict(state=TrialState.RUNNING, values=None)
        elif kind == 0:
            made |= dict(state=TrialState.FAIL, values=None)
        elif kind in (1, 2) and objectives == 1:
            last = int(rng.integers(5))
            made |= dict(state=TrialState.PRUNED, values=None,
                         intermediate_values={step: round(values[0] + 1 - 0.1 * step, 2) for step in range(1, last + 1)})
        if constrained and made["state"] in (TrialState.COMPLETE, TrialState.PRUNED) and number % 4 != 1:
            made["constraints"] = {"a": round(params["u"] - 7 - 0.3 * float(rng.normal()), 1),
                                   "b": round(0.3 - params["q"] + 0.1 * float(rng.normal()), 1)}
        trials.append(create_trial(**made))
    return trials


class Record:
    def __init__(self):
        self.lines = [f"# Optuna {optuna.__version__}, NumPy {np.__version__}: record_tpe.py"]

    def add(self, name, numbers):
        words = (repr(round(float(x), 12)) if name.split(".")[-1] in ("good", "bad") else
                 np.format_float_positional(float(x), trim="-") if math.isfinite(x) else repr(float(x))
                 for x in np.asarray(numbers, dtype=float).reshape(-1))
        self.lines.append(f"{name} {' '.join(words)}".rstrip())

    def add_history(self, name, trials, objectives):
        for parameter, distribution in SPACE.items():
            self.add(f"{name}.{parameter}", [distribution.to_internal_repr(t.params[parameter])
                                             if parameter in t.params else math.nan for t in trials])
        self.add(f"{name}.state", [t.state for t in trials])  # 0: running, 1: complete, 2: pruned, 3: failed
        self.add(f"{name}.step", [t.last_step or 0 for t in trials])
        for k in range(objectives):
            self.add(f"{name}.value{k}", [
                t.values[k] if t.state == TrialState.COMPLETE else
                t.intermediate_values.get(t.last_step, math.nan) for t in trials])
        for k in "ab":
            self.add(f"{name}.constraint_{k}", [t.constraints.get(k, math.nan) for t in trials])


def widths(names):
    """The logarithm of the volume of the continuous axes."""
    continuous = [d for d in map(SPACE.get, names) if isinstance(d, FloatDistribution) and d.step is None]
    return sum(math.log(math.log(d.high / d.low) if d.log else d.high - d.low) for d in continuous)


def record_study(record, name, directions, groups, seed, constrained=False, **options):
    trials = history(seed, len(directions), constrained)
    record.add_history(name, trials, len(directions))
    rng = np.random.default_rng(seed + 1)
    points = {parameter: [d.to_internal_repr(draw(rng, d)) for _ in range(POINTS)]
              for parameter, d in SPACE.items()}
    for i, trial in enumerate(trials[3:46:7]):  # close to trials
        for parameter, value in trial.params.items():
            points[parameter][i] = SPACE[parameter].to_internal_repr(value)
        points["u"][i] += 0.01
    for parameter, drawn in points.items():
        record.add(f"{name}.at.{parameter}", drawn)
    for group in groups:
        study = optuna.create_study(directions=directions)
        study.add_trials(trials)
        sampler = Recording(seed=0, **options)
        space = {parameter: SPACE[parameter] for parameter in group}
        sampler._sample(study, study.ask(), space)
        for (density, numbers), side in zip(sampler.built, ("good", "bad")):
            at = {parameter: np.array(points[parameter]) for parameter in group}
            record.add(f"{name}.{'+'.join(group)}.{side}", density.log_pdf(at) + widths(group))
            if group is groups[0]:
                record.add(f"{name}.{side}_trials", [n for n in numbers if n < TRIALS])


def check_groups():
    """Which parameters Optuna models together."""
    study = optuna.create_study()
    study.add_trials(history(1, 1, False))
    grouped = Recording(seed=0, group=True)
    grouped.infer_relative_search_space(study, study.ask())
    found = sorted(sorted(space) for space in grouped._search_space_group.search_spaces)
    assert found == sorted([sorted(ALWAYS), ["p"], ["b", "k"]]), found
    assert sorted(Recording(seed=0).infer_relative_search_space(study, study.ask())) == sorted(ALWAYS)


def main():
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    np.argsort = stable_argsort(np.argsort)
    check_groups()
    always, alone = tuple(ALWAYS), [(name,) for name in SPACE]
    record = Record()
    record_study(record, "one", ["minimize"], [always, ("p",), ("b",), ("k",), ("b", "k"), *alone], 1)
    record_study(record, "kept", ["maximize"], [always, *alone], 2, constrained=True)
    record_study(record, "two", ["minimize", "maximize"], [always, *alone], 3)
    record_study(record, "three", ["minimize", "maximize", "minimize"], [always], 4, constrained=True)
    record_study(record, "options", ["minimize"], [always, ("p",)], 5, prior_weight=0.3,
                 consider_magic_clip=False, consider_endpoints=True, constant_liar=False,
                 gamma=lambda n: min(math.ceil(0.3 * n), 40))
    out = pathlib.Path(__file__).parent / "tpe.txt"
    out.write_text("\n".join(record.lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
