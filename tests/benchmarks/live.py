#!/usr/bin/env python3
# bench: live - examples/emulated run by the real service under each policy, beside the simulator: times and the order of policies
# builds: tuner emulated
"""24 elastic trials on 16 slots, with real processes, groups and reports, once for each policy; then
`tuner simulate emulated` for the same study, policies and slots. The simulator is told two figures of
the machine, measured in the live runs together: the mean pause of a resize, and how long a trial takes
to start (many processes start at once on few cores).

time_err_max is the largest relative error of a simulated study time. order_agrees: any two policies
whose live times differ by more than the live runs' own spread (--repeat, else 3 %) come in the same
order in the simulator.

Usage: live.py [--policies NAME,...] [--repeat N]"""
import argparse
import itertools
import json
import pathlib
import statistics
import subprocess
import tempfile

from bench_run import TUNER, export

SLOTS = 16
LEAST_SPREAD = 0.03
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/emulated"
POLICIES = ["promise_goodput", "fixed", "top_job", "hypersched", "fluid", "pollux", "sia"]


def study_file(folder, policy):
    study = json.loads((EXAMPLE / "study.json").read_text())
    study["policy"] = policy
    study["directory"] = str(EXAMPLE)
    path = pathlib.Path(folder) / "study.json"
    path.write_text(json.dumps(study))
    return path, study["name"]


def live(policy):
    with tempfile.TemporaryDirectory() as folder:
        path, name = study_file(folder, policy)
        subprocess.run([TUNER, "run", str(path), "--dir", folder + "/run", "--slots", str(SLOTS)],
                       check=True, stdout=subprocess.DEVNULL)
        return export(folder + "/run/espalier.db", name)


def seconds(record):
    spans = [s for t in record["trials"] for s in t["spans"]]
    return max(s["to"] for s in spans) - min(s["from"] for s in spans)


def pauses(record):
    return [r["pause_s"] for t in record["trials"] for r in t["resizes"] if r["from_replicas"] > 0]


def starts(record):
    """Of each trial that kept its first slots for two reports: how much longer the first step took."""
    for t in record["trials"]:
        values = t["values"]
        if len(values) < 2 or any(r["from_replicas"] > 0 for r in t["resizes"]):
            continue
        yield max(0.0, values[0]["at"] - t["started_at"] - (values[1]["at"] - values[0]["at"]))


def simulated(policies, resize_s, start_s):
    with tempfile.TemporaryDirectory() as folder:
        path, _ = study_file(folder, policies[0])
        command = [TUNER, "simulate", "emulated", str(path), "--slots", str(SLOTS), "--json",
                   folder + "/runs.json", "--resize-s", str(resize_s), "--start-s", str(start_s)]
        for policy in policies:
            command += ["--policy", policy]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        runs = json.loads((pathlib.Path(folder) / "runs.json").read_text())["runs"]
        return {run["policy"]: run["figures"] for run in runs}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    policies = arguments.policies.split(",")
    records = {p: [live(p) for _ in range(arguments.repeat)] for p in policies}
    every = [r for p in policies for r in records[p]]
    paused = [s for r in every for s in pauses(r)]
    resize_s = statistics.mean(paused) if paused else 0.0
    start_s = statistics.mean(s for r in every for s in starts(r))
    sim = simulated(policies, resize_s, start_s)
    times = {p: statistics.median(seconds(r) for r in records[p]) for p in policies}
    spread = max([LEAST_SPREAD] + [max(map(seconds, r)) / min(map(seconds, r)) - 1 for r in records.values()])
    print(f"\n{'policy':<20}{'live s':>9}{'simulated s':>13}{'error':>8}{'live best':>11}{'simulated':>11}")
    errors = {}
    for p in sorted(policies, key=times.get):
        errors[p] = sim[p]["finish_s"] / times[p] - 1
        best = statistics.median(r["study"]["best_value"] for r in records[p])
        print(f"{p:<20}{times[p]:>9.1f}{sim[p]['finish_s']:>13.1f}{errors[p]:>8.1%}{best:>11.4f}{sim[p]['best']:>11.4f}")
    apart = [(p, q) for p, q in itertools.permutations(policies, 2) if times[p] * (1 + spread) < times[q]]
    swapped = [(p, q) for p, q in apart if sim[p]["finish_s"] >= sim[q]["finish_s"]]
    for p, q in swapped:
        print(f"order differs: {p} before {q} live, not simulated")
    print(json.dumps({"time_err_max": round(max(map(abs, errors.values())), 4), "order_agrees": not swapped,
                      "pairs_apart": len(apart), "pairs_swapped": len(swapped),
                      "resize_s": round(resize_s, 4), "start_s": round(start_s, 3)}))


if __name__ == "__main__":
    main()
