#!/usr/bin/env python3
# bench: first_hour - the blocks of docs/first_hour.md as they are pasted, from pip install to a tuned script: minutes, and of which ours
# builds: tuner espalier_torch
"""Without --wheel it is the wheel of this build. --debian makes a bare system by debootstrap (root alone), in which there
is no compiler, and runs the page in it as a user who is not root."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from bench_run import SMOKE, torch_python
from install import ROOT, bare_debian, made

PAGE = ROOT / "docs/first_hour.md"
PATIENCE_S = 1800
MOST_S, MOST_OURS_S = 600, 60
# As install's, and as a user of its own.
WITHIN = ["unshare", "--mount", "sh", "-c",
          'mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot --userspec=1000:1000 "$@"', "sh"]
# Each command that the shell comes to is a line of descriptor 9, with the moment at which it does.
TRACED = "exec 9>commands; BASH_XTRACEFD=9; PS4='+@$EPOCHREALTIME '; set -ex\n"


def options():
    parser = argparse.ArgumentParser(prog="bench.sh first_hour")
    parser.add_argument("--wheel", type=pathlib.Path, metavar="FILE", help="default: made of this build")
    parser.add_argument("--debian", metavar="RELEASE", help="in a bare system of this release, such as bookworm")
    return parser.parse_args()


def blocks():
    return re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def surroundings():
    """Of the shell: nothing but what pip needs to be told of this network or, where nothing is to be asked of it, a torch."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}
    if not SMOKE:
        return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **kept}
    python, environment = torch_python()
    where = "import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])"
    torch = subprocess.run([python, "-c", where], check=True, text=True, stdout=subprocess.PIPE, env=environment).stdout.strip()
    return {"PATH": f"{pathlib.Path(python).parent}:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONPATH": torch, "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1", "OMP_NUM_THREADS": "1"}


def pasted(folder, inner, shell):
    """Runs the page in the folder, which the shell sees as `inner`. What it has printed."""
    (folder / "page.sh").write_text("\n".join([f"cd {inner}", TRACED, *blocks(), "set +x; date +%s.%N > ended"]))
    variables = [f"{name}={value}" for name, value in {**surroundings(), "HOME": inner}.items()]
    done = subprocess.run([*shell, "env", "-i", *variables, "bash", f"{inner}/page.sh"], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S)
    if done.returncode != 0:
        logs = "\n".join(log.read_text(errors="replace")[-2000:] for log in folder.glob("espalier-runs/**/replica-0.log"))
        sys.exit(f"the page ended with {done.returncode}:\n{done.stdout[-6000:]}\n{logs}")
    return done.stdout


def commands(folder):
    """Each command, when it began, and how long it took."""
    told = re.findall(r"^\++@([\d.]+) (.*)$", (folder / "commands").read_text(), re.MULTILINE)
    moments = [float(moment) for moment, _ in told] + [float((folder / "ended").read_text())]
    return [(words, began, ends - began) for (_, words), began, ends in zip(told, moments, moments[1:])]


def busy_s(trials):
    """How long one trial at least ran."""
    total, until = 0.0, 0.0
    for began, ends in sorted((trial["started_at"], trial["ended_at"]) for trial in trials):
        total += max(0.0, ends - max(began, until))
        until = max(until, ends)
    return total


def main():
    given = options()
    with tempfile.TemporaryDirectory(prefix="espalier-hour-") as work:
        wheel = given.wheel.resolve() if given.wheel else made(work)
        system = bare_debian(given.debian, work) if given.debian else None
        folder = (system or pathlib.Path(work)) / "home/ada"
        folder.mkdir(parents=True)
        shutil.copy(wheel, folder)
        if system:
            shutil.chown(folder, 1000, 1000)
            if subprocess.run([*WITHIN, system, "sh", "-c", "command -v cc gcc g++ c++ clang"], stdout=subprocess.DEVNULL).returncode == 0:
                sys.exit("first_hour: there is a compiler in the bare system")
        inner, shell = ("/home/ada", [*WITHIN, system]) if system else (folder, [])
        printed = pasted(folder, inner, shell)
        timed = commands(folder)
        export = ["tuning/bin/tuner", "export", "quarters", "--db", "espalier-runs/quarters/espalier.db", "--format", "json"]
        exported = subprocess.run([*shell, "sh", "-c", f"cd {inner} && exec {' '.join(export)}"], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout
        trials = json.loads(exported)["trials"]
        wrong = [trial["number"] for trial in trials if trial["state"] != "TRIAL_COMPLETE" or len(trial["values"]) != 20]
        if len(trials) != 24 or wrong or not (folder / "report-quarters.html").exists():
            sys.exit(f"{len(trials)} trials, of which these are not as they should be: {wrong}\n{printed[-6000:]}")
        ours = [(words, took) for words, _, took in timed if words.startswith(("tuner ", "pip install ./espalier"))]
        clock_s, ours_s = timed[-1][1] + timed[-1][2] - timed[0][1], sum(took for _, took in ours) - busy_s(trials)
        for words, _, took in timed:
            if took >= 0.5:
                print(f"{took:7.1f} s  {words.splitlines()[0]}")
        print(json.dumps({"clock_s": round(clock_s, 1), "ours_s": round(ours_s, 1), "trials": len(trials),
                          "best": min(trial["value"] for trial in trials)}))
        if not SMOKE and (clock_s > MOST_S or ours_s > MOST_OURS_S):
            sys.exit(f"first_hour: more than {MOST_S} s, of which ours {MOST_OURS_S} s")


if __name__ == "__main__":
    main()
