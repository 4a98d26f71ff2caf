#!/usr/bin/env python3
# bench: objectives - hypervolume by slot-seconds of studies of several objectives that are pruned, beside Optuna's without
# builds: bench_objective_trials
"""Trials of one slot on 4 slots, on virtual time and by the core that ships, for as many slot-seconds as 200 trials (of
recorded nets 50) of Optuna's NSGA-II or TPE take there without pruning. Problems: made-up nets of which loss and
parameters, or loss and seconds a step, are to be small; ZDT and DTLZ, with curves that come to their values at unlike
rates; and recorded nets on Fashion-MNIST, error and latency over width, depth and learning rate
(programs/fashion_nets.py records them). Only trials that have run to their end count, and each start of a trial costs
half a step or so on both sides.

slot_seconds_ratio: what ours has used when it has the hypervolume that Optuna ends with, over what Optuna uses; the
median over seeds, and over problems the median of these. A seed at which ours does not come to it within Optuna's time
counts as above 1. hypervolume_ratio: ours over Optuna's at equal slot-seconds, likewise. Keys of our other samplers end in
their names, and those of a sampler without pruning in _unpruned. Optuna's results are in data/objectives_optuna.json, by
seed; --peers runs what is missing there."""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

from bench_run import BIN, SMOKE, usual_or_smoke
from sampler_calls import call_peers
from sampler_statistics import p_of_larger

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "suite"))
from run import measure_loop  # noqa: E402

DATA = HERE / "data" / "objectives_optuna.json"
PROGRAM = [os.path.join(BIN, "bench_objective_trials"), str(HERE / "data")]
SLOTS = 4
TRIALS = {"fashion_mlp": 50}  # there are 192 nets
USUAL_TRIALS = 200
SEEDS = usual_or_smoke(20, 1)
PEERS = ("nsga2", "tpe")
# A name, the study's sampler and its pruner. Figures without a name in their keys are the first one's.
OURS = {"tpe": ("tpe", "promise"), "nsga2": ("nsga2", "promise"), "auto": ("auto", "promise"),
        "tpe_unpruned": ("tpe", "none"), "nsga2_unpruned": ("nsga2", "none"), "auto_unpruned": ("auto", "none")}
BARS = {"slot_seconds_ratio": 0.6, "hypervolume_ratio": 1.0}


def problems(chosen):
    lines = subprocess.run([*PROGRAM, "problems"], check=True, capture_output=True, text=True).stdout
    known = [json.loads(line) for line in lines.splitlines()]
    return [problem for problem in known if not chosen or problem["name"] in chosen]


def run(problem, contender, seed, slot_seconds, options):
    sampler, pruner = OURS[contender]
    options = options if pruner != "none" else [option for option in options if not option.startswith("pruner.")]
    command = [*PROGRAM, "run", problem, sampler, pruner, str(seed), repr(slot_seconds), *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def volume_at(volumes, slot_seconds):
    return max((volume for at, volume in volumes if at <= slot_seconds), default=0.0)


def first_at(volumes, volume):
    """When that hypervolume was reached; infinite: it was not."""
    return min((at for at, reached in volumes if reached >= volume), default=math.inf)


def compare(studies, peer):
    """By seed: slot-seconds over Optuna's, and hypervolume over Optuna's, where Optuna has any."""
    slots, volumes = [], []
    for study, (slot_seconds, *tenths) in zip(studies, peer):
        slots.append(first_at(study["volumes"], tenths[-1]) / slot_seconds)
        if tenths[-1] > 0:
            volumes.append(volume_at(study["volumes"], slot_seconds) / tenths[-1])
    return slots, volumes


def text(ratio):
    return "above 1" if ratio > 1 else f"{ratio:.3f}"


class Comparison:
    """What ours came to, by contender and peer, problem by problem."""

    def __init__(self, record):
        self.record, self.slots, self.volumes, self.worse = record, {}, {}, []

    def add(self, problem, contender, studies):
        share = statistics.median(s["volumes"][-1][1] if s["volumes"] else 0 for s in studies) / problem["front_volume"]
        trials = {key: statistics.median(s[key] for s in studies) for key in ("trials", "complete", "pruned", "cpu_s")}
        print(f"{problem['name']:16} {contender:15} {share:.3f} of the best front's; {trials['trials']:.0f} trials, "
              f"{trials['pruned']:.0f} pruned, {trials['cpu_s']:.1f} s a study", flush=True)
        for peer in PEERS:
            theirs = self.record[peer][problem["name"]][:len(studies)]
            slots, volumes = compare(studies, theirs)
            slots_ratio, volume_ratio = statistics.median(slots), statistics.median(volumes)
            self.slots.setdefault((contender, peer), {})[problem["name"]] = slots_ratio
            self.volumes.setdefault((contender, peer), {})[problem["name"]] = volume_ratio
            p = p_of_larger([row[-1] for row in theirs], [volume_at(s["volumes"], row[0]) for s, row in zip(studies, theirs)])
            print(f"    over Optuna's {peer:6} slot-seconds {text(slots_ratio)}, hypervolume {volume_ratio:.3f} "
                  f"(p that it is no less: {p:.2g})", flush=True)

    def figures(self):
        figures = {}
        for (contender, peer), slots in self.slots.items():
            end = "" if contender == next(iter(OURS)) else f"_{contender}"
            figures[f"slot_seconds_ratio_{peer}{end}"] = round(min(9.99, statistics.median(slots.values())), 3)
            volumes = self.volumes[contender, peer]
            figures[f"hypervolume_ratio_{peer}{end}"] = round(statistics.median(volumes.values()), 3)
        return figures

    def misses(self, contender):
        missed = []
        for peer in PEERS:
            for problem, ratio in self.slots.get((contender, peer), {}).items():
                if ratio > BARS["slot_seconds_ratio"]:
                    missed.append(f"slot-seconds on {problem} beside {peer}")
            for problem, ratio in self.volumes.get((contender, peer), {}).items():
                if ratio < BARS["hypervolume_ratio"]:
                    missed.append(f"hypervolume on {problem} beside {peer}")
        return missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", action="store_true", help="run what is missing of Optuna's results")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many of each study (20)")
    parser.add_argument("--ours", nargs="+", default=list(OURS), choices=OURS, help="these alone")
    parser.add_argument("--problems", nargs="+", default=usual_or_smoke([], ["zdt1", "fashion_mlp"]), help="these alone")
    parser.add_argument("--options", nargs="+", default=[], metavar="PART.OPTION=VALUE", help="of sampler and pruner")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="studies at a time")
    options = parser.parse_args()
    chosen = problems(options.problems)
    if options.peers:
        call_peers(*PROGRAM, DATA, SLOTS, options.seeds,
                   *(f"{p['name']}:{TRIALS.get(p['name'], USUAL_TRIALS)}" for p in chosen), script="optuna_objectives.py")
    recorded = json.loads(DATA.read_text())
    comparison = Comparison(recorded["volumes"])
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for problem in chosen:
            budgets = [max(recorded["volumes"][peer][problem["name"]][seed][0] for peer in PEERS)
                       for seed in range(options.seeds)]
            if SMOKE:
                budgets = [budget / 10 for budget in budgets]
            for contender in options.ours:
                studies = list(pool.map(lambda seed: run(problem["name"], contender, seed, budgets[seed], options.options),
                                        range(options.seeds)))
                comparison.add(problem, contender, studies)
    for contender in options.ours:
        print(f"bars missed by {contender}: " + (", ".join(comparison.misses(contender)) or "none"))
    print(json.dumps(comparison.figures() | {"problems": len(chosen), "seeds": options.seeds,
                                             "optuna": recorded["versions"]["optuna"], "loop_s": round(measure_loop(), 3)}))


if __name__ == "__main__":
    main()
