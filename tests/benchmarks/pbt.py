#!/usr/bin/env python3
# bench: pbt - population-based training: how long a member stands still that takes over from another; beside Ray Tune's
# builds: tuner espalier_torch
"""A pause is from the end of the last epoch of a member that is among the worst to the beginning of the first one of what
goes on in its place: a clone of ours, which is a new process, or Ray's trial with another's checkpoint. Four members on four
slots, so that nobody waits for a slot; then eight on four, for what comes of it in the same number of epochs."""
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from bench_run import TUNER, export, peers_python, quantile, torch_python, usual_or_smoke

SLOTS = 4
EPOCHS = usual_or_smoke(60, 4)
STEPS = 20
STUDY = "population"
PEER = usual_or_smoke(True, False)


def ours(members, epochs):
    python, environment = torch_python()
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "epochs"
        program = pathlib.Path(__file__).resolve().parent / "pbt_trial.py"
        study = {"name": STUDY, "command": [python, str(program), str(log), str(epochs), str(STEPS)],
                 "metric": {"name": "loss", "direction": "minimize"}, "trials": members, "slots": 1, "max_step": epochs,
                 "sampler": "random", "search_space": {"lr": {"_type": "loguniform", "_value": [1e-4, 0.5]}},
                 "env": {"PYTHONPATH": environment["PYTHONPATH"],
                         "ESPALIER_TORCH_LIBRARY": environment["ESPALIER_TORCH_LIBRARY"]},
                 "population": {"interval": 1, "parameters": ["lr"]}}
        path = pathlib.Path(folder) / "study.json"
        path.write_text(json.dumps(study))
        run = pathlib.Path(folder) / "run"
        begun = time.time()
        subprocess.run([TUNER, "run", str(path), "--dir", str(run), "--slots", str(SLOTS)], check=True, env=environment,
                       stdout=subprocess.DEVNULL)
        wall_s = time.time() - begun
        trials = export(run / "espalier.db", STUDY)["trials"]
        return judge(trials, log.read_text().splitlines()) | {"wall_s": wall_s}


def judge(trials, lines):
    first_begin, last_end = {}, {}
    for line in lines:
        at, number, what = line.split()
        if what == "begin":
            first_begin.setdefault(int(number), float(at))
        else:
            last_end[int(number)] = float(at)
    pauses = []
    for trial in trials:
        replaced = re.search(r"among the best: trial (\d+) goes on", trial["reason"])
        if replaced and int(replaced[1]) in first_begin and trial["number"] in last_end:
            pauses.append(first_begin[int(replaced[1])] - last_end[trial["number"]])
    best = min(trial["value"] for trial in trials if trial["state"] == "TRIAL_COMPLETE")
    return {"pauses_s": sorted(pauses), "exploits": len(pauses), "best": best}


def of_ray(members, epochs, reuse):
    script = pathlib.Path(__file__).resolve().parent / "peers" / "ray_pbt.py"
    done = subprocess.run([peers_python(), script, str(members), str(SLOTS), str(epochs), str(STEPS), reuse],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(f"Ray did not run: {done.stderr[-2000:]}", flush=True)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main():
    alone = ours(SLOTS, EPOCHS)
    print(f"ours, {SLOTS} members: {alone}", flush=True)
    figures = {"exploits": alone["exploits"]}
    if alone["pauses_s"]:
        figures |= {"exploit_pause_p50_ms": round(1000 * statistics.median(alone["pauses_s"]), 1),
                    "exploit_pause_p90_ms": round(1000 * quantile(alone["pauses_s"], 0.9), 1)}
    crowd = ours(2 * SLOTS, EPOCHS)
    figures |= {"wall_s": round(crowd["wall_s"], 1), "best": crowd["best"]}
    for reuse in ("reuse", "anew") if PEER else ():
        theirs = of_ray(SLOTS, EPOCHS, reuse)
        if theirs is None or not theirs["pauses_s"] or not alone["pauses_s"]:
            continue
        figures |= {f"ray_{reuse}_exploits": len(theirs["pauses_s"]),
                    f"ray_{reuse}_pause_p50_ms": round(1000 * statistics.median(theirs["pauses_s"])),
                    f"over_ray_{reuse}": round(statistics.median(theirs["pauses_s"]) / statistics.median(alone["pauses_s"]), 1)}
        crowd_of_ray = of_ray(2 * SLOTS, EPOCHS, reuse)
        if crowd_of_ray:
            figures |= {f"ray_{reuse}_wall_s": round(crowd_of_ray["wall_s"], 1), f"ray_{reuse}_best": crowd_of_ray["best"]}
    print(json.dumps(figures))


if __name__ == "__main__":
    sys.exit(main())
