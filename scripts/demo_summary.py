#!/usr/bin/env python3
"""Reads a study's JSON export: the summary of the demo, or the best trial's checkpoint.

The export is the StudyDetails message of tuner/proto/tuner.proto as JSON. Protobuf's own JSON
leaves out zeros, writes 64-bit integers as strings and names in camelCase: all are understood.
"""

import argparse
import json
import re
import sys

# A resize must never start a replica anew. A restart from a checkpoint counts as one by resize
# when the last thing decided about the trial before it was to change its slots.
RESIZES = ("grow", "shrink", "move")


def snake_case(value):
    """The same JSON with every key in snake_case."""
    if isinstance(value, dict):
        return {re.sub(r"(?<!^)([A-Z])", lambda m: "_" + m[1].lower(), key): snake_case(item)
                for key, item in value.items()}
    if isinstance(value, list):
        return [snake_case(item) for item in value]
    return value


def state_of(trial):
    return trial.get("state", "").removeprefix("TRIAL_")


def best_trial(study):
    """The trial that the study names as best; without a name, the best completed value."""
    trials = study.get("trials", [])
    named = study.get("study", {}).get("best_trial")
    if named is not None:
        for trial in trials:
            if int(trial.get("number", 0)) == int(named):
                return trial
    ended = [t for t in trials if state_of(t) == "COMPLETE" and t.get("value") is not None]
    if not ended:
        sys.exit("demo_summary.py: no trial completed with a value, so none is the best")
    choose = max if study.get("study", {}).get("maximize", False) else min
    return choose(ended, key=lambda t: float(t["value"]))


def restarts_by_resize(decisions):
    """How often a trial's last decision before a restart was a resize."""
    last_kind = {}
    restarts = 0
    for decision in sorted(decisions, key=lambda d: float(d.get("at", 0))):
        trial, kind = int(decision.get("trial_number", 0)), decision.get("kind", "")
        if kind == "restart" and last_kind.get(trial) in RESIZES:
            restarts += 1
        last_kind[trial] = kind
    return restarts


def summary(study, test, seconds):
    decisions = study.get("decisions", [])

    def count_of(kind):
        return len([d for d in decisions if d.get("kind") == kind])

    return {
        "validation": round(float(best_trial(study)["value"]), 4),
        "test": test,
        "trials": len(study.get("trials", [])),
        "pruned": len([t for t in study.get("trials", []) if state_of(t) == "PRUNED"]),
        "grown": count_of("grow"),
        "shrunk": count_of("shrink"),
        "restarted_by_resize": restarts_by_resize(decisions),
        "seconds": seconds,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("export", help="the file that `tuner export --format json` wrote")
    parser.add_argument("--best-checkpoint", action="store_true",
                        help="print the best trial's checkpoint instead")
    parser.add_argument("--test", type=float, help="accuracy on the test images")
    parser.add_argument("--seconds", type=float, help="how long the demo took")
    arguments = parser.parse_args()
    with open(arguments.export, encoding="utf-8") as file:
        study = snake_case(json.load(file))
    if arguments.best_checkpoint:
        checkpoint = best_trial(study).get("checkpoint")
        if not checkpoint:
            sys.exit("demo_summary.py: the best trial has no checkpoint in the export")
        print(checkpoint)
    else:
        print(json.dumps(summary(study, arguments.test, arguments.seconds)))


if __name__ == "__main__":
    main()
