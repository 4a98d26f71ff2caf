#!/usr/bin/env python3
# bench: emulated - 24 elastic trials on 16 emulated slots: slots in use and who got them, beside the `fixed` policy (one slot a trial)
# builds: tuner emulated
"""Runs examples/emulated twice, with its own policy and with `fixed`. Slots count as used while a
process of a trial holds them; `used_share` is until the time when less than a quarter of the trials
is left, the tail in which there may be too few trials that can use all slots."""
import json
import pathlib
import subprocess
import tempfile

from bench_run import PATIENT_AGENT, TUNER, export, usual_or_smoke

SLOTS = 16
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/emulated"
SHORTER = usual_or_smoke({}, {"trials": 4, "max_step": 2})


def run(policy):
    study = json.loads((EXAMPLE / "study.json").read_text())
    study |= SHORTER | {"policy": policy}
    study["directory"] = str(EXAMPLE)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "study.json"
        path.write_text(json.dumps(study))
        subprocess.run([TUNER, "run", str(path), "--dir", folder + "/run", "--slots", str(SLOTS),
                        *map(str, PATIENT_AGENT)], check=True)
        return export(folder + "/run/espalier.db", study["name"])


def figures(record):
    trials = record["trials"]
    spans = [(s["from"], s["to"], len(s["slots"])) for t in trials for s in t["spans"]]
    begin, end = min(s[0] for s in spans), max(s[1] for s in spans)
    ends = sorted(t["ended_at"] for t in trials)
    tail = ends[-max(1, len(trials) // 4)]
    used = sum((min(b, tail) - a) * n for a, b, n in spans if a < tail)
    seconds = {"TRIAL_COMPLETE": 0.0, "TRIAL_PRUNED": 0.0}
    held = {"TRIAL_COMPLETE": 0.0, "TRIAL_PRUNED": 0.0}
    for t in trials:
        for s in t["spans"]:
            seconds[t["state"]] = seconds.get(t["state"], 0) + s["to"] - s["from"]
            held[t["state"]] = held.get(t["state"], 0) + (s["to"] - s["from"]) * len(s["slots"])
    mean = lambda state: round(held[state] / seconds[state], 2) if seconds[state] else None
    return {"used_share": round(used / (SLOTS * (tail - begin)), 4), "seconds": round(end - begin, 1),
            "used_share_whole": round(sum((b - a) * n for a, b, n in spans) / (SLOTS * (end - begin)), 4),
            "best": record["study"]["best_value"],
            "most_slots_of_best": max(len(s["slots"]) for t in trials
                                      if t["number"] == record["study"]["best_trial"] for s in t["spans"]),
            "mean_slots_complete": mean("TRIAL_COMPLETE"), "mean_slots_pruned": mean("TRIAL_PRUNED")}


def main():
    ours, fixed = figures(run("promise_goodput")), figures(run("fixed"))
    print(json.dumps({**ours, "fixed_seconds": fixed["seconds"], "fixed_best": fixed["best"],
                      "fixed_used_share_whole": fixed["used_share_whole"],
                      "over_fixed_seconds": round(ours["seconds"] / fixed["seconds"], 3)}))


if __name__ == "__main__":
    main()
