#!/usr/bin/env python3
"""Prints what held which slot when, from the records of both studies. Exits with 1 if a slot was held twice.

usage: record.py OURS.json OPTUNA.json (both by `tuner export STUDY --format json`)
"""
import json
import sys

COLUMNS = 100
OURS = "abcdefghijklmnopqrstuvwxyz"


def spans_of(path, name):
    """(slot, from, to, mark) of each slot of each span; `name` gives a trial's mark."""
    with open(path) as file:
        trials = json.load(file)["trials"]
    return [((slot["node_id"], slot["index"]), span["from"], span["to"], name(trial["number"]))
            for trial in trials for span in trial["spans"] for slot in span["slots"]]


def main():
    ours = spans_of(sys.argv[1], lambda number: OURS[int(number) % len(OURS)])
    optuna = spans_of(sys.argv[2], lambda number: str(int(number) % 10))
    spans = sorted(ours + optuna)
    if not ours or not optuna or any(not to for _, _, to, _ in spans):
        sys.exit("a study held no slots, or still holds some")
    begin = min(start for _, start, _, _ in spans)
    column_s = max(0.05, (max(to for _, _, to, _ in spans) - begin) / COLUMNS)
    print(f"slots over time, {column_s:.2f} s a column; letters: our trials, digits: Optuna's, '.': free")
    twice = []
    for slot in sorted({slot for slot, *_ in spans}):
        held = [span[1:] for span in spans if span[0] == slot]
        twice += [(slot, a, b) for a, b in zip(held, held[1:]) if b[0] < a[1] - 1e-6]
        line = ["."] * (COLUMNS + 1)
        for start, to, mark in held:
            for column in range(int((start - begin) / column_s), int((to - begin) / column_s) + 1):
                line[min(column, COLUMNS)] = mark
        print(f"  slot {slot[1]}  {''.join(line)}")
    moments = sorted({moment for _, start, to, _ in spans for moment in (start, to)})
    together = [(a, b) for a, b in zip(moments, moments[1:])]

    def most(some, during):
        return max((sum(start <= a and to >= b for _, start, to, _ in some) for a, b in during), default=0)

    beside = [(a, b) for a, b in together if any(start <= a and to >= b for _, start, to, _ in optuna)]
    alone = [span for span in together if span not in beside]
    print(f"our trials held up to {most(ours, beside)} slots while Optuna's held some, up to {most(ours, alone)} otherwise; "
          f"Optuna's up to {most(optuna, beside)}")
    for slot, a, b in twice:
        print(f"slot {slot}: {a} and {b} overlap")
    print(f"{len(spans)} spans of slots: " + ("some slots were held twice" if twice else "no slot was held twice"))
    sys.exit(1 if twice else 0)


if __name__ == "__main__":
    main()
