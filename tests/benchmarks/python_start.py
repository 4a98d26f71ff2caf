#!/usr/bin/env python3
# bench: python_start - from the agent's start of a replica in Python to its first line and its first step, and a study of espalier.tune, forked from a zygote and by interpreters of their own
# builds: tuner espalier_torch
"""A study of short trials, one after the other on one slot, by `tuner run`. Counted from the file of parameters, which
the agent writes before it starts the process (its time is that of the kernel's last tick, up to 4 ms before). The trials
that run before there is a zygote are left out. A study of espalier.tune is counted whole."""
import json
import os
import pathlib
import subprocess
import tempfile

from bench_run import BIN, PATIENT_AGENT, TUNER, quantile, torch_python, usual_or_smoke

FORKED, COLD = usual_or_smoke((40, 8), (3, 1))
MORE = usual_or_smoke(6, 20)  # that may run before the zygote is there
TUNED, ROUNDS = usual_or_smoke((8, 3), (2, 1))  # trials of a study, and studies


def starts(trials, preload):
    python, environment = torch_python()
    with tempfile.TemporaryDirectory() as folder:
        stamps = pathlib.Path(folder) / "stamps"
        study = pathlib.Path(folder) / "study.json"
        study.write_text(json.dumps({
            "name": "start", "trials": trials, "sampler": "random", "preload": preload, "max_consecutive_failures": 1,
            "command": [python, str(pathlib.Path("python_start_trial.py").resolve()), str(stamps)],
            "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}}))
        subprocess.run([TUNER, "run", str(study), "--dir", folder, "--slots", "1", "--quiet",
                        *map(str, PATIENT_AGENT)], check=True,
                       stdout=subprocess.DEVNULL, env=environment)
        return [json.loads(line) for line in stamps.read_text().splitlines()]


def tuned_s(preload):
    python, environment = torch_python()
    with tempfile.TemporaryDirectory() as folder:
        call = f"import python_start_tuned as t; print(t.study_s({TUNED}, {preload!r}, {folder!r}))"
        done = subprocess.run([python, "-c", call], check=True, stdout=subprocess.PIPE, text=True,
                              env=environment | {"PATH": f"{BIN}{os.pathsep}{environment['PATH']}"})
        return float(done.stdout)


def milliseconds(all_starts, moment):
    return [1000 * (moment(start) - start["order"]) for start in all_starts]


def main():
    figures = {}
    for name, trials, preload in (("", FORKED + MORE, []), ("cold_", COLD, False)):
        measured = [start for start in starts(trials, preload) if start["forked"] == (preload == [])]
        assert len(measured) >= (FORKED if preload == [] else COLD), f"only {len(measured)} {name or 'forked'}"
        lines = milliseconds(measured, lambda start: start["first_line"])
        steps = milliseconds(measured, lambda start: start["steps"][0])
        figures |= {f"{name}first_line_ms": round(quantile(lines, 0.5), 1),
                    f"{name}first_line_worst_ms": round(max(lines), 1),
                    f"{name}first_step_ms": round(quantile(steps, 0.5), 1),
                    f"{name}first_step_worst_ms": round(max(steps), 1),
                    f"{name}own_mb": round(quantile([start["own_mb"] for start in measured], 0.5), 1),
                    f"{name}starts": len(measured)}
        print(name or "forked", figures[f"{name}first_line_ms"], figures[f"{name}first_step_ms"], flush=True)
    for name, preload in (("", []), ("cold_", False)):
        figures[f"{name}tune_s"] = round(quantile([tuned_s(preload) for _ in range(ROUNDS)], 0.5), 1)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
