#!/usr/bin/env python3
# bench: live - examples/emulated run by the real service under each policy, beside the simulator: times and the order of policies
# builds: tuner emulated
"""24 elastic trials on 16 slots, with real processes, groups and reports, under each policy; then
`tuner simulate emulated` for the same study, policies and slots.

The simulator is told what this machine needs, measured here and not fitted to the times compared:
how long starts take, from studies of 1, 4 and 16 trials that start at once (processor seconds of a
start, the rest of it, how much starts differ), and the mean pause of a resize, as trials told it.

Which trial starts a little sooner decides who survives the first rung, so single runs differ. Times
are medians: of --repeat live runs, and of simulations that draw the starts anew.

time_err_max is the largest relative error of a simulated median. order_agrees: two policies are
apart if each live run of one was shorter than each of the other, and their medians differ by more
than the least noise (3 %, or with a single run each the mean spread of the policies that ran more
often); all that are apart come in the same order in the simulator.

--keep FOLDER keeps the record of each live run there and takes those that it finds, so the whole can
be run in pieces. --under puts a command before `tuner run`, such as "chrt -r 1" on a machine where
others run too: an all-reduce of 16 processes waits for each of them.

Usage: live.py [--policies NAME,...] [--repeat N] [--keep FOLDER] [--under COMMAND]"""
import argparse
import itertools
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import tempfile

from bench_run import PATIENT_AGENT, TUNER, export, usual_or_smoke

SLOTS = 16
LEAST_NOISE = 0.03
BURSTS = usual_or_smoke([1, 1, 4, 4, 16, 16], [1, 8])  # trials that start at once
DRAWS = usual_or_smoke(21, 2)                           # simulations of each policy
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/emulated"
SHORTER = usual_or_smoke({}, {"trials": 3, "max_step": 2})
POLICIES = ["promise_goodput", "fixed", "top_job", "hypersched", "fluid", "utility_cost", "optimus",
            "scaling_efficiency", "pollux", "sia", "tiresias"]


def study_file(folder, **changes):
    study = json.loads((EXAMPLE / "study.json").read_text())
    study.update(SHORTER | changes, directory=str(EXAMPLE))
    path = pathlib.Path(folder) / "study.json"
    path.write_text(json.dumps(study))
    return path, study["name"]


def kept(folder, name, measure):
    """The record of this name in the folder, measured where there is none yet."""
    path = pathlib.Path(folder) / f"{name}.json" if folder else None
    if path and path.exists():
        return json.loads(path.read_text())
    record = measure()
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record))
    return record


def live(under, **changes):
    with tempfile.TemporaryDirectory() as folder:
        path, name = study_file(folder, **changes)
        subprocess.run([*under, TUNER, "run", str(path), "--dir", folder + "/run", "--slots", str(SLOTS),
                        *map(str, PATIENT_AGENT)], check=True, stdout=subprocess.DEVNULL)
        return export(folder + "/run/espalier.db", name)


def burst(under, trials):
    """Seconds from start to ready of so many trials that start at once: what their first epoch took
    longer than the second."""
    record = live(under, policy="fixed", pruner="none", trials=trials, max_step=2, sampler="random",
                  search_space={"lr": {"_type": "uniform", "_value": [0.1, 1]},
                                "batch_size": {"_type": "choice", "_value": [64]}},
                  command=["emulated", "--profile", "profile.json", "--epochs", "2", "--samples", "3072"])
    first_two = [(t, *[v["at"] for v in t["values"]]) for t in record["trials"]]
    return [max(0.0, one - t["started_at"] - (two - one)) for t, one, two in first_two]


def start_model(bursts, cores):
    """Least squares of `start = start_s + cpu_s * max(1, trials / cores)`. Those of a burst share the
    cores, so the last is done when all processor time is spent, and the first had the least to do."""
    points = [(max(1.0, len(b) / cores), s) for b in bursts for s in b]
    x, y = statistics.mean(p[0] for p in points), statistics.mean(p[1] for p in points)
    cpu_s = sum((p[0] - x) * (p[1] - y) for p in points) / sum((p[0] - x) ** 2 for p in points)
    largest = [b for b in bursts if len(b) == max(map(len, bursts))]
    return {"start_cpu_s": max(0.0, cpu_s), "start_s": max(0.0, y - cpu_s * x), "cores": cores,
            "start_spread": min(0.9, statistics.mean(1 - min(b) / max(*b, 1e-9) for b in largest))}


def seconds(record):
    spans = [s for t in record["trials"] for s in t["spans"]]
    return max(s["to"] for s in spans) - min(s["from"] for s in spans)


def pauses(record):
    return [r["pause_s"] for t in record["trials"] for r in t["resizes"] if r["from_replicas"] > 0]


def simulated(policies, model):
    """The figures of each policy, for each draw of the starts."""
    figures = {p: [] for p in policies}
    with tempfile.TemporaryDirectory() as folder:
        path, _ = study_file(folder)
        out = pathlib.Path(folder) / "runs.json"
        command = [TUNER, "simulate", "emulated", str(path), "--slots", str(SLOTS), "--json", str(out)]
        for key, value in model.items():
            command += ["--" + key.replace("_", "-"), f"{value:.6f}"]
        for policy in policies:
            command += ["--policy", policy]
        for draw in range(DRAWS):
            subprocess.run([*command, "--start-seed", str(draw)], check=True, stdout=subprocess.DEVNULL)
            for run in json.loads(out.read_text())["runs"]:
                figures[run["policy"]].append(run["figures"])
    return figures


def apart(times, noise):
    """Pairs of policies of which the first is surely shorter, live."""
    for p, q in itertools.permutations(times, 2):
        margin = noise if min(len(times[p]), len(times[q])) == 1 else LEAST_NOISE
        longer = statistics.median(times[p]) * (1 + margin) < statistics.median(times[q])
        if longer and max(times[p]) < min(times[q]):
            yield p, q


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--policies", default=",".join(usual_or_smoke(POLICIES, ["promise_goodput", "fixed"])))
    parser.add_argument("--repeat", type=int, default=usual_or_smoke(3, 1))
    parser.add_argument("--keep")
    parser.add_argument("--under", default="")
    arguments = parser.parse_args()
    policies, under = arguments.policies.split(","), shlex.split(arguments.under)
    bursts = [kept(arguments.keep, f"burst-{n}-{i}", lambda: burst(under, n)) for i, n in enumerate(BURSTS)]
    model = start_model(bursts, len(os.sched_getaffinity(0)))
    records = {p: [kept(arguments.keep, f"{p}-{i}", lambda: live(under, policy=p))
                   for i in range(arguments.repeat)] for p in policies}
    paused = [s for p in policies for r in records[p] for s in pauses(r)]
    model["resize_s"] = statistics.mean(paused) if paused else 0.0
    sim = simulated(policies, model)
    times = {p: [seconds(r) for r in records[p]] for p in policies}
    spreads = [max(v) / min(v) - 1 for v in times.values() if len(v) > 1]
    noise = max(LEAST_NOISE, statistics.mean(spreads) if spreads else 0)
    print(f"\n{'policy':<20}{'live s':>9}{'of':>16}{'simulated s':>13}{'of':>16}{'error':>8}{'best':>8}{'sim.':>8}")
    middle, simulated_s = {p: statistics.median(times[p]) for p in policies}, {}
    for p in sorted(policies, key=middle.get):
        finish = [f["finish_s"] for f in sim[p]]
        simulated_s[p] = statistics.median(finish)
        best = statistics.median(r["study"]["best_value"] for r in records[p])
        print(f"{p:<20}{middle[p]:>9.1f}{f'{min(times[p]):.1f} to {max(times[p]):.1f}':>16}{simulated_s[p]:>13.1f}"
              f"{f'{min(finish):.1f} to {max(finish):.1f}':>16}{simulated_s[p] / middle[p] - 1:>8.1%}{best:>8.4f}"
              f"{statistics.median(f['best'] for f in sim[p]):>8.4f}")
    pairs = list(apart(times, noise))
    swapped = [(p, q) for p, q in pairs if simulated_s[p] >= simulated_s[q]]
    for p, q in swapped:
        print(f"order differs: {p} before {q} live, not simulated")
    print(json.dumps({"time_err_max": round(max(abs(simulated_s[p] / middle[p] - 1) for p in policies), 4),
                      "order_agrees": not swapped, "pairs_apart": len(pairs), "pairs_swapped": len(swapped),
                      "live_spread": round(statistics.mean(spreads), 4) if spreads else None,
                      **{key: round(value, 4) for key, value in model.items()}}))


if __name__ == "__main__":
    main()
