#!/usr/bin/env python3
# bench: pbt - population-based training: how long a member stands still that takes over from another; beside Ray Tune's, or ours alone with --no-ray
# builds: tuner espalier_torch
"""A pause is from the end of the last epoch of a member that is among the worst to the beginning of the first one of what
goes on in its place: a clone of ours, which is a new process, or Ray's trial with another's checkpoint. Four members on four
slots, so that nobody waits for a slot, with one seed after the other until a hundred have taken over; then eight on four, for what comes of it in the same number of epochs. There a clone
may have to wait: then its pause is from the decision that gives it a slot. Last, clones that are asked for by `tuner clone`, on
a free slot: from the call to the beginning of the first epoch. --no-ray leaves Ray out, which takes most of the time and has
to be installed first."""
import argparse
import json
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from bench_run import TUNER, export, peers_python, quantile, torch_python, usual_or_smoke

SLOTS = 4
EPOCHS = usual_or_smoke(120, 4)
EXPLOITS = usual_or_smoke(100, 1)
MOST_SEEDS = usual_or_smoke(12, 1)
CLONES = usual_or_smoke(15, 1)
CLONE_EPOCHS = 3
STEPS = 20
STUDY = "population"


def study_of(log, epochs, *more, **keys):
    python, environment = torch_python()
    program = pathlib.Path(__file__).resolve().parent / "pbt_trial.py"
    return {"name": STUDY, "command": [python, str(program), str(log), str(epochs), str(STEPS), *map(str, more)],
            "metric": {"name": "loss", "direction": "minimize"}, "slots": 1, "sampler": "random",
            "search_space": {"lr": {"_type": "loguniform", "_value": [1e-4, 0.5]}},
            "env": {"PYTHONPATH": environment["PYTHONPATH"],
                    "ESPALIER_TORCH_LIBRARY": environment["ESPALIER_TORCH_LIBRARY"]}} | keys, environment


def ours(members, epochs, seed):
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "epochs"
        study, environment = study_of(log, epochs, trials=members, max_step=epochs, seed=seed,
                                      population={"interval": 1, "parameters": ["lr"]})
        path = pathlib.Path(folder) / "study.json"
        path.write_text(json.dumps(study))
        run = pathlib.Path(folder) / "run"
        begun = time.time()
        subprocess.run([TUNER, "run", str(path), "--dir", str(run), "--slots", str(SLOTS)], check=True, env=environment,
                       stdout=subprocess.DEVNULL)
        wall_s = time.time() - begun
        record = export(run / "espalier.db", STUDY)
        return judge(record["trials"], log.read_text().splitlines(), given_slots(record)) | {"wall_s": wall_s}


def given_slots(record):
    """When each clone was planned to have a slot, where it has not gone on in that of the member whose place it took."""
    first = {}
    for decision in record["decisions"]:
        if decision["kind"] == "start":
            first.setdefault(decision["trial_number"], decision)
    return {number: start["at"] for number, start in first.items() if "takes the slots" not in start["reason"]}


def judge(trials, lines, given):
    first_begin, last_end = {}, {}
    for line in lines:
        at, number, what = line.split()
        if what == "begin":
            first_begin.setdefault(int(number), float(at))
        else:
            last_end[int(number)] = float(at)
    pauses, of_spares = [], []
    for trial in trials:
        replaced = re.search(r"among the best: trial (\d+) goes on", trial["reason"])
        if not replaced or int(replaced[1]) not in first_begin or trial["number"] not in last_end:
            continue
        clone = int(replaced[1])
        pauses.append(first_begin[clone] - last_end[trial["number"]])
        if clone in given:
            of_spares.append(first_begin[clone] - given[clone])
    best = min(trial["value"] for trial in trials if trial["state"] == "TRIAL_COMPLETE")
    return {"pauses_s": sorted(pauses), "of_spares_s": sorted(of_spares), "exploits": len(pauses), "best": best}


def asked_for():
    """Seconds from the call of `tuner clone` to the clone's first epoch."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "epochs"
        study, environment = study_of(log, 10**6, CLONE_EPOCHS, trials=1)
        path = pathlib.Path(folder) / "study.json"
        path.write_text(json.dumps(study))
        run = pathlib.Path(folder) / "run"

        def await_lines(number, what, count):
            while True:
                lines = log.read_text().splitlines() if log.exists() else []
                found = [line.split() for line in lines]
                at = [float(word[0]) for word in found if len(word) == 3 and word[1:] == [str(number), what]]
                if len(at) >= count:
                    return at
                time.sleep(0.05)

        took = []
        process = subprocess.Popen([TUNER, "run", str(path), "--dir", str(run), "--slots", "2"], env=environment,
                                   stdout=subprocess.DEVNULL)
        try:
            for clone in range(1, CLONES + 2):
                await_lines(0, "end", 10 * clone)
                begun = time.time()
                subprocess.run([TUNER, "clone", STUDY, "0", "--set", f"lr={0.001 * clone}", "--dir", str(run)], check=True,
                               env=environment, stdout=subprocess.DEVNULL)
                took.append(await_lines(clone, "begin", 1)[0] - begun)
                await_lines(clone, "end", CLONE_EPOCHS)
                await_lines(0, "end", len(await_lines(0, "end", 1)) + 10)  # until its slot is free
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    return sorted(took[1:])  # the first one waits for the imports of those to come


def of_ray(members, epochs, reuse):
    script = pathlib.Path(__file__).resolve().parent / "peers" / "ray_pbt.py"
    done = subprocess.run([peers_python(), script, str(members), str(SLOTS), str(epochs), str(STEPS), reuse],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(f"Ray did not run: {done.stderr[-2000:]}", flush=True)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench.sh pbt")
    parser.add_argument("--no-ray", action="store_true", default=usual_or_smoke(False, True), help="ours alone")
    parser.add_argument("--exploits", type=int, default=EXPLOITS, metavar="N",
                        help=f"takeovers of {SLOTS} members, after which no further seed is begun; default: %(default)s")
    given = parser.parse_args()
    pauses = []
    for seed in range(1, MOST_SEEDS + 1):
        alone = ours(SLOTS, EPOCHS, seed)
        print(f"ours, {SLOTS} members: {alone}", flush=True)
        pauses += alone["pauses_s"]
        if len(pauses) >= given.exploits:
            break
    figures = {"exploits": len(pauses)}
    if pauses:
        figures |= {"exploit_pause_p50_ms": round(1000 * statistics.median(pauses), 1),
                    "exploit_pause_p90_ms": round(1000 * quantile(pauses, 0.9), 1)}
    crowd = ours(2 * SLOTS, EPOCHS, 1)
    print(f"ours, {2 * SLOTS} members: {crowd}", flush=True)
    if crowd["of_spares_s"]:
        figures["spare_exploit_p50_ms"] = round(1000 * statistics.median(crowd["of_spares_s"]), 1)
    figures["clone_ms_p50"] = round(1000 * statistics.median(asked_for()), 1)
    figures |= {"wall_s": round(crowd["wall_s"], 1), "best": crowd["best"]}
    for reuse in () if given.no_ray else ("reuse", "anew"):
        theirs = of_ray(SLOTS, EPOCHS, reuse)
        if theirs is None or not theirs["pauses_s"] or not pauses:
            continue
        figures |= {f"ray_{reuse}_exploits": len(theirs["pauses_s"]),
                    f"ray_{reuse}_pause_p50_ms": round(1000 * statistics.median(theirs["pauses_s"])),
                    f"over_ray_{reuse}": round(statistics.median(theirs["pauses_s"]) / statistics.median(pauses), 1)}
        crowd_of_ray = of_ray(2 * SLOTS, EPOCHS, reuse)
        if crowd_of_ray:
            figures |= {f"ray_{reuse}_wall_s": round(crowd_of_ray["wall_s"], 1), f"ray_{reuse}_best": crowd_of_ray["best"]}
    print(json.dumps(figures))


if __name__ == "__main__":
    sys.exit(main())
