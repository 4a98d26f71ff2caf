#!/usr/bin/env python3
# bench: samplers - how good each sampler's best of 100 trials is beside Optuna's of the same name; --speed: processor time a suggestion
# builds: bench_sampler_trials
"""14 functions of tests/core/samplers, 20 seeds each. Optuna's results are in data/samplers_optuna.json, by seed; --peers
runs what is missing there. A cell is a function under a sampler that both have. Ours is worse there if a one-sided test
of Mann and Whitney says so at 0.05, by Holm over all cells. NAME_regret_ratio is the median over a sampler's cells of our
median regret over Optuna's; a regret below a billionth of random search's is none. `auto` is compared with our own.

--speed: a study of floats to which so many random trials were told, in the process and the memory of each library, one
thread; then suggestions, each told before the next: the mean of their processor times, and the longest."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from bench_run import BIN, SMOKE, setup_optuna, usual_or_smoke
from sampler_picture import draw
from sampler_statistics import p_of_larger, ranks, regret_ratio, rejected

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "suite"))
from run import measure_loop  # noqa: E402

PROGRAM = os.path.join(BIN, "bench_sampler_trials")
PEERS = HERE / "peers" / "optuna_samplers.py"
DATA = HERE / "data" / "samplers_optuna.json"
TRIALS = usual_or_smoke(100, 12)
SEEDS = usual_or_smoke(20, 2)
# Optuna's by the record's names, and what a study file says for ours.
SAME = {
    "random": ("random", {}),
    "grid": ("grid", {}),
    "brute_force": ("brute_force", {}),
    "qmc": ("qmc", {}),
    "tpe": ("tpe", {}),
    "tpe_univariate": ("tpe", {"multivariate": 0}),
    "tpe_group": ("tpe", {"group": 1}),
    "cmaes": ("cmaes", {}),
    "nsga2": ("nsga2", {}),
    "nsga3": ("nsga3", {}),
    "gp": ("gp", {}),
}
RATIO_BAR = 1.05
NO_REGRET = 1e-9  # of random search's
SPEED_BARS = {"tpe_over_optuna": 0.05, "tpe_over_rustuna": 1.0, "cma_over_optuna": 0.1, "gp_over_optuna": 0.1,
              "qmc_over_optuna": 0.1}
LONGEST_BAR_MS = 50  # of TPE, CMA-ES and NSGA at 10,000 trials


def call(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def words(options):
    return [f"{name}={value}" for name, value in options.items()]


def has(sampler, options):
    """Whether our table has it."""
    done = subprocess.run([PROGRAM, "speed", sampler, "1", "1", "1", *words(options)], capture_output=True, text=True)
    return done.returncode == 0


class Ours:
    """Regrets of our samplers, each run when it is first asked for."""

    def __init__(self):
        self.known = {}

    def run(self, name, functions):
        sampler, options = SAME.get(name, (name, {}))
        missing = [f for f in functions if (name, f) not in self.known]
        for line in call("quality", sampler, TRIALS, SEEDS, *missing, *words(options)) if missing else []:
            self.known[name, line["function"]] = line["regrets"]
            last = [by_trial[-1] for by_trial in line["regrets"]]
            print(f"{name:14} {line['function']:16} median regret {statistics.median(last):.4g}, "
                  f"{line['seconds'] / len(last):.2f} s a study", flush=True)

    def last(self, name, function):
        return [by_trial[-1] for by_trial in self.known[name, function]]


def compare(ours, record, names, functions):
    """The cells: sampler, function, p, ratio of the regrets."""
    cells = []
    for name in names:
        theirs = {f: [r for r in values[:SEEDS] if r is not None] for f, values in record[name].items() if f in functions}
        theirs = {f: values for f, values in theirs.items() if values}
        ours.run(name, list(theirs))
        for function, regrets in theirs.items():
            mine = ours.last(name, function)
            nothing = NO_REGRET * statistics.median(r for r in record["random"][function] if r is not None)
            cells.append({"sampler": name, "function": function, "p": p_of_larger(mine, regrets),
                          "ratio": regret_ratio(mine, regrets, nothing)})
    for cell, worse in zip(cells, rejected([c["p"] for c in cells])):
        cell["worse"] = worse
        print(f"{cell['sampler']:14} {cell['function']:16} regret over Optuna's {cell['ratio']:.3f}, "
              f"p {cell['p']:.3f}{' WORSE' if worse else ''}", flush=True)
    return cells


def judge_auto(ours, names, functions):
    """auto beside our other samplers: its mean rank by median regret, and where it is worse than the second best."""
    ours.run("auto", functions)
    for name in names:
        ours.run(name, functions)
    placed, p_values = [], []
    for function in functions:
        medians = {name: statistics.median(ours.last(name, function)) for name in names}
        second = sorted(medians, key=medians.get)[:2][-1]
        mine = ours.last("auto", function)
        placed.append(ranks([statistics.median(mine), *medians.values()])[0])
        p_values.append(p_of_larger(mine, ours.last(second, function)))
        print(f"auto           {function:16} rank {placed[-1]:g} of {len(names) + 1}, second best {second}, "
              f"p {p_values[-1]:.3f}", flush=True)
    return {"auto_worse_cells": sum(rejected(p_values)), "auto_mean_rank": round(statistics.mean(placed), 2)}


def quality(chosen, chosen_functions):
    record = json.loads(DATA.read_text())
    known = [f["name"] for f in call("functions")]
    functions = [f for f in known if f in chosen_functions] if chosen_functions else usual_or_smoke(known, known[:2] + known[-2:])
    recorded = [name for name in record["regret"] if not chosen or name in chosen]
    names = [name for name in recorded if has(*SAME[name])]
    ours = Ours()
    cells = compare(ours, record["regret"], names, functions)
    figures = {"cells": len(cells), "worse_cells": sum(c["worse"] for c in cells)}
    for name in names:
        ratios = [c["ratio"] for c in cells if c["sampler"] == name]
        figures[f"{name}_regret_ratio"] = round(statistics.median(ratios), 3) if ratios else None
    if has("auto", {}) and not chosen:
        figures |= judge_auto(ours, [n for n in names if n not in ("grid", "brute_force")], functions)
    for name in set(recorded) - set(names):
        print(f"ours has no counterpart of Optuna's {name}")
    misses = [f"{c['sampler']} on {c['function']}" for c in cells if c["worse"]]
    misses += [key for key, value in figures.items() if key.endswith("_regret_ratio") and value and value > RATIO_BAR]
    print("bars missed: " + (", ".join(misses) or "none"))
    return figures | {"optuna": record["versions"]["optuna"], "trials": TRIALS, "seeds": SEEDS}


def picture(path, names):
    """Each sampler's median regret over random search's, by function."""
    functions = [f["name"] for f in call("functions")]
    names = [name for name in dict.fromkeys(["random", *(names or [*SAME, "auto"])]) if name not in ("grid", "brute_force") and has(*SAME.get(name, (name, {})))]
    ours, shares = Ours(), {}
    for name in names:
        ours.run(name, functions)
    for function in functions:
        medians = {name: statistics.median(ours.last(name, function)) for name in names}
        shares[function] = {name: value / medians["random"] for name, value in medians.items()}
    title = f"Regret after {TRIALS} trials, median of {SEEDS} seeds, as a share of random search's"
    pathlib.Path(path).write_text(draw(shares, title))
    return {"samplers": len(names), "functions": len(functions)}


def peers_python():
    """An interpreter with Optuna, cmaes, scipy, rustuna and, for Gaussian processes, torch."""
    return os.environ.get("ESPALIER_SAMPLER_PEERS") or setup_optuna("5.0.0")


def record_peers(samplers):
    subprocess.run([peers_python(), PEERS, "quality", PROGRAM, DATA, str(TRIALS), str(SEEDS), *samplers], check=True)
    regrets = json.loads(DATA.read_text())["regret"]
    return {"recorded": sum(r is not None for f in regrets.values() for values in f.values() for r in values)}


def peer_speed(name, dimensions, trials, suggestions):
    done = subprocess.run([peers_python(), PEERS, "speed", name, *map(str, (dimensions, trials, suggestions))],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def our_speed(name, dimensions, trials, suggestions):
    sampler, options = SAME[name]
    return call("speed", sampler, dimensions, trials, suggestions, *words(options))[0]


def told(what, taken):
    print(f"{what}: {statistics.mean(taken):.3f} ms a suggestion, the longest {max(taken):.2f}", flush=True)
    return statistics.mean(taken)


def speed():
    """Beside Optuna and rustuna at 1,000 trials of 6 floats; alone with 40 floats, and at 10,000 trials."""
    trials, more = usual_or_smoke((1000, 10_000), (30, 60))
    figures = {}
    for key, peer, ours, suggestions in (("tpe_over_optuna", "tpe", "tpe", 50), ("tpe_over_rustuna", "rustuna_tpe", "tpe", 200),
                                         ("cma_over_optuna", "cmaes", "cmaes", 200), ("gp_over_optuna", "gp", "gp", 5),
                                         ("qmc_over_optuna", "qmc", "qmc", 50)):
        if not has(*SAME[ours]):
            print(f"{key}: our table has no such sampler")
            continue
        suggestions = usual_or_smoke(suggestions, 2)
        mine = told(f"{ours}, 6 floats, {trials} trials", our_speed(ours, 6, trials, suggestions))
        figures[f"{ours}_ms"] = round(mine, 4)
        if SMOKE:
            continue
        figures[key] = round(mine / told(f"  {peer} of the peer", peer_speed(peer, 6, trials, suggestions)), 4)
    for name in ("tpe", "tpe_univariate", "cmaes", "nsga2", "nsga3", "qmc", "gp"):
        for dimensions, n in ((40, trials), (6, more), (40, more)):
            if not has(*SAME[name]) or (name == "gp" and n > trials):
                continue
            taken = our_speed(name, dimensions, n, usual_or_smoke(20, 2))
            told(f"{name}, {dimensions} floats, {n} trials", taken)
            if n == more and name in ("tpe", "cmaes", "nsga2", "nsga3"):
                key = f"{name}_longest_ms"
                figures[key] = round(max(figures.get(key, 0), max(taken)), 2)
    misses = [key for key, bar in SPEED_BARS.items() if figures.get(key, 0) > bar]
    misses += [key for key, value in figures.items() if key.endswith("_longest_ms") and value > LONGEST_BAR_MS]
    print("bars missed: " + (", ".join(misses) or "none"))
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--speed", action="store_true", help="processor time a suggestion")
    parser.add_argument("--peers", action="store_true", help="run what is missing of Optuna's results")
    parser.add_argument("--picture", metavar="OUT.svg", help="draw the picture of docs/samplers.md")
    parser.add_argument("--functions", nargs="+", default=[], help="these alone")
    parser.add_argument("samplers", nargs="*", help="these alone")
    options = parser.parse_args()
    if options.peers:
        figures = record_peers(options.samplers)
    elif options.picture:
        figures = picture(options.picture, options.samplers)
    elif options.speed:
        figures = speed()
    else:
        figures = quality(options.samplers, options.functions) | (speed() if SMOKE else {})
    print(json.dumps(figures | {"loop_s": round(measure_loop(), 3)}))


if __name__ == "__main__":
    main()
