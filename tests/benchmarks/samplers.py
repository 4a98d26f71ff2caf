#!/usr/bin/env python3
# bench: samplers - how good each sampler's best of 100 trials is beside Optuna's of the same name; --speed: time of a suggestion
# builds: bench_sampler_trials tuner
"""14 functions of tests/core/samplers, 20 seeds each. Optuna's results are in data/samplers_optuna.json, by seed; --peers
runs what is missing there. A cell is a function under a sampler that both have. Ours is worse there if a one-sided
test of Mann and Whitney says so at 0.05, by Holm over all cells. NAME_regret_ratio is the median over a sampler's
cells, of five at least, of our median regret over Optuna's; a regret below a billionth of random search's is none.
Of qmc, whose regrets are much as chance has it, there are five times as many seeds.

`auto` is compared with our own others: its place by median regret, and whether it is worse than the second best of them,
by the same test over all functions. Samplers that come to the same regrets by seed on a function are one sampler there.

--develop: what `auto` goes by, on functions that the above does not have: the Gaussian process and another that goes on
after some trials.

--speed: a study of floats to which so many random trials were told, in the process and the memory of each library, one
thread; then suggestions, each told before the next: the median of their processor times, and the longest.

--prior: the mean over seeds of how far the best trial is from a bowl's least value, without a prior, with one near it and
with one in a far corner: NAME_TRIALS_PRIOR.

--like: the median over seeds of the regret, without another study, with 100 trials of TPE on the same function moved by a
twentieth of each range, and with as many on its mirror image: NAME_FUNCTION_TRIALS_LIKE."""
import argparse
import json
import pathlib
import statistics
import sys

from bench_run import SMOKE, usual_or_smoke
from sampler_calls import PROGRAM, SAME, call, call_peers, call_sampler, in_table
from sampler_development import develop
from sampler_picture import draw
from sampler_speed import speed
from sampler_statistics import levels, p_of_larger, ranks, rejected

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "suite"))
from run import measure_loop  # noqa: E402

DATA = HERE / "data" / "samplers_optuna.json"
TRIALS = usual_or_smoke(100, 12)
SEEDS = usual_or_smoke(20, 2)
RATIO_BAR = 1.05
AUTO_BARS = {"auto_worse_cells": 0, "auto_mean_rank": 2.5}
# Of 20 studies of ours and 20 others of ours the ratio is off by 0.043 (standard deviation).
TIMES_THE_SEEDS = {"qmc": 5}
FEWEST_CELLS = 5  # of a sampler with a ratio
NO_REGRET = 1e-9  # of random search's
PRIOR_TRIALS = {"tpe": TRIALS, "gp": min(TRIALS, 30), "cmaes": TRIALS}
LIKE_FUNCTIONS = usual_or_smoke(["branin", "levy4", "hartmann6"], ["branin"])
PICTURED = ("random", "qmc", "nsga2", "cmaes", "tpe", "gp")
TRY_EVERYTHING = ("grid", "brute_force")  # no search: not compared with auto


class Ours:
    """Regrets of our samplers; each is run when it is first asked for."""

    def __init__(self, seeds, times=None):
        self.known, self.seeds, self.times = {}, seeds, times or {}
        self.noisy = {f["name"] for f in call("functions") if f["noise"] > 0}

    def seeds_of(self, name):
        return self.seeds * self.times.get(name, 1)

    def run(self, name, functions):
        for noisy in (False, True):
            missing = [f for f in functions if (name, f) not in self.known and (f in self.noisy) == noisy]
            if missing:
                self.learn(name, call_sampler("quality", name, TRIALS, self.seeds_of(name), *missing, noisy=noisy))

    def learn(self, name, lines):
        for line in lines:
            self.known[name, line["function"]] = line["regrets"]
            last = [by_trial[-1] for by_trial in line["regrets"]]
            print(f"{name:14} {line['function']:16} median regret {statistics.median(last):.4g}, "
                  f"{line['seconds'] / len(last):.2f} s a study", flush=True)

    def last(self, name, function):
        return [by_trial[-1] for by_trial in self.known[name, function]]

    def median(self, name, function):
        return statistics.median(self.last(name, function))


def compare(ours, record, names, functions):
    """The cells: sampler, function, p, ratio of the regrets, and whether ours is worse."""
    cells = []
    for name in names:
        theirs = {f: [r for r in record[name].get(f, [])[:ours.seeds_of(name)] if r is not None] for f in functions}
        theirs = {f: values for f, values in theirs.items() if values}
        ours.run(name, list(theirs))
        for function, regrets in theirs.items():
            nothing = NO_REGRET * statistics.median(r for r in record["random"][function] if r is not None)
            mine, regrets = levels(ours.last(name, function), nothing), levels(regrets, nothing)
            cells.append({"sampler": name, "function": function, "p": p_of_larger(mine, regrets),
                          "ratio": statistics.median(mine) / statistics.median(regrets), "seeds": len(regrets)})
    for cell, worse in zip(cells, rejected([c["p"] for c in cells])):
        cell["worse"] = worse
        print(f"{cell['sampler']:14} {cell['function']:16} regret over Optuna's {cell['ratio']:.3f}, "
              f"p {cell['p']:.3g}, {cell['seeds']} of its seeds{' WORSE' if worse else ''}", flush=True)
    return cells


def others_than_auto(ours, names, function):
    """The samplers that are none of the others on this function, nor auto; the best first."""
    seen, others = [ours.known["auto", function]], []
    for name in names:
        if ours.known[name, function] not in seen:
            seen.append(ours.known[name, function])
            others.append(name)
    return sorted(others, key=lambda name: ours.median(name, function))


def judge_auto(ours, names, functions):
    """auto's mean place among ours, and in how many functions it is worse than the second best of the others."""
    for name in ("auto", *names):
        ours.run(name, functions)
    places, p_values = [], []
    for function in functions:
        others = others_than_auto(ours, names, function)
        places.append(ranks([ours.median(name, function) for name in ("auto", *others)])[0])
        p_values.append(p_of_larger(ours.last("auto", function), ours.last(others[1], function)))
        print(f"{'auto':14} {function:16} place {places[-1]:g} of {len(others) + 1}; of the others {others[0]} and "
              f"{others[1]} are best, p {p_values[-1]:.3g}", flush=True)
    return {"auto_worse_cells": sum(rejected(p_values)), "auto_mean_rank": round(statistics.mean(places), 2)}


def quality(chosen, chosen_functions, seeds):
    """The figures, and which bars they miss."""
    record = json.loads(DATA.read_text())
    known = [f["name"] for f in call("functions")]
    functions = [f for f in known if f in chosen_functions] if chosen_functions else usual_or_smoke(known, known[-2:])
    recorded = [name for name in record["regret"] if not chosen or name in chosen]
    names = [name for name in recorded if in_table(name)]
    for name in recorded:
        if name not in names:
            print(f"Optuna's {name} has no counterpart in our table")
    ours = Ours(seeds, TIMES_THE_SEEDS)
    cells = compare(ours, record["regret"], names, functions)
    figures = {"cells": len(cells), "worse_cells": sum(c["worse"] for c in cells)}
    for name in names:
        ratios = [c["ratio"] for c in cells if c["sampler"] == name]
        if len(ratios) >= FEWEST_CELLS:
            figures[f"{name}_regret_ratio"] = round(statistics.median(ratios), 3)
    misses = [f"{c['sampler']} on {c['function']}" for c in cells if c["worse"]]
    misses += [key for key, value in figures.items() if key.endswith("_regret_ratio") and value > RATIO_BAR]
    if not chosen or "auto" in chosen:
        figures |= judge_auto(ours, [n for n in SAME if n not in TRY_EVERYTHING and in_table(n)], functions)
        misses += [key for key, bar in AUTO_BARS.items() if figures[key] > bar]
    return figures | {"optuna": record["versions"]["optuna"], "trials": TRIALS, "seeds": seeds}, misses


def picture(path, names, seeds):
    """Each sampler's median regret over random search's, by function."""
    functions = [f["name"] for f in call("functions")]
    names = [n for n in dict.fromkeys(["random", *(names or PICTURED)]) if in_table(n)]
    ours, shares = Ours(seeds), {}
    for name in names:
        ours.run(name, functions)
    for function in functions:
        of_random = ours.median("random", function)
        shares[function] = {name: ours.median(name, function) / of_random for name in names}
    title = f"Regret after {TRIALS} trials, median of {seeds} seeds, as a share of random search's"
    pathlib.Path(path).write_text(draw(shares, title))
    return {"samplers": len(names), "functions": len(functions)}


def prior(names, seeds):
    """What a prior gains and costs on a bowl: mean distance of the best trial from the least value."""
    figures = {}
    for name in names or PRIOR_TRIALS:
        trials = PRIOR_TRIALS.get(name, TRIALS)
        for line in call_sampler("prior", name, trials, seeds, noisy=False):
            for tenth, regret in enumerate(line["mean_regrets"], start=1):
                if (after := trials * tenth // 10) in (10, 30, 100, trials):
                    figures[f"{name}_{after}_{line['prior']}"] = regret
                    print(f"{name:6} {after:4} trials, prior {line['prior']:12} mean regret {regret:.4g}", flush=True)
    return figures


def like(names, seeds):
    """What trials of another study gain and cost: median regrets."""
    figures = {}
    for name in names or PRIOR_TRIALS:
        trials = PRIOR_TRIALS.get(name, TRIALS)
        for line in call_sampler("like", name, trials, seeds, *LIKE_FUNCTIONS, noisy=False):
            for tenth, regret in enumerate(line["median_regrets"], start=1):
                if (after := trials * tenth // 10) in (9, 10, 30, 100, trials):
                    figures[f"{name}_{line['function']}_{after}_{line['like']}"] = regret
                    print(f"{name:6} {line['function']:10} {after:4} trials, another study {line['like']:7} "
                          f"median regret {regret:.4g}", flush=True)
    return figures


def record_peers(samplers, seeds):
    call_peers("quality", PROGRAM, DATA, TRIALS, seeds, *samplers)
    regrets = json.loads(DATA.read_text())["regret"]
    return {"recorded": sum(r is not None for f in regrets.values() for values in f.values() for r in values)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--speed", action="store_true", help="processor time a suggestion")
    parser.add_argument("--peers", action="store_true", help="run what is missing of Optuna's results")
    parser.add_argument("--prior", action="store_true", help="what a prior gains, and a wrong one costs")
    parser.add_argument("--like", action="store_true", help="what trials of another study gain, and of an unlike one cost")
    parser.add_argument("--develop", action="store_true", help="samplers one after the other, on other functions")
    parser.add_argument("--picture", metavar="OUT.svg", help="draw the picture of docs/samplers.md")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many of each study (20)")
    parser.add_argument("--functions", nargs="+", default=[], help="these alone")
    parser.add_argument("samplers", nargs="*", help="these alone")
    options = parser.parse_args()
    misses = []
    if options.peers:
        figures = record_peers(options.samplers, options.seeds)
    elif options.develop:
        figures = develop(options.seeds)
    elif options.picture:
        figures = picture(options.picture, options.samplers, options.seeds)
    elif options.prior:
        figures = prior(options.samplers, options.seeds)
    elif options.like:
        figures = like(options.samplers, options.seeds)
    elif options.speed:
        figures, misses = speed()
    else:
        figures, misses = quality(options.samplers, options.functions, options.seeds)
        if SMOKE:
            figures |= speed()[0] | prior(["tpe"], options.seeds) | like(["tpe"], options.seeds)
    print("bars missed: " + (", ".join(misses) or "none"))
    print(json.dumps(figures | {"loop_s": round(measure_loop(), 3)}))


if __name__ == "__main__":
    main()
