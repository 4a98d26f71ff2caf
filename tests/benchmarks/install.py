#!/usr/bin/env python3
# bench: install - the wheel beside each torch that it has a library for: pip install, and the five lines of docs/python_install.md on one slot and then two
# builds: tuner espalier_torch
"""Without --wheel it is the wheel of this build, which has a library for one torch. --debian makes a bare system in a
folder by debootstrap (root alone; Debian's package of that name), with that release's Python."""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from bench_run import BIN, SMOKE, torch_python

ROOT = pathlib.Path(__file__).resolve().parents[2]
CELL = ROOT / "tests/benchmarks/install_cell.py"
FIVE_LINES = ROOT / "tests/python/page/five_lines.py"
# Mounts that end with the cell, whatever becomes of it.
WITHIN = ["unshare", "--mount", "sh", "-c", 'mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$@"', "sh"]
PACKAGES = "python3,python3-venv,ca-certificates"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"


def options():
    parser = argparse.ArgumentParser(prog="bench.sh install")
    parser.add_argument("--wheel", type=pathlib.Path, metavar="FILE", help="default: made of this build")
    parser.add_argument("--torch", action="append", metavar="X.Y", help="may be repeated; default: all that the wheel fits")
    parser.add_argument("--python", metavar="PATH", help="the interpreter; default: the system's python3")
    parser.add_argument("--debian", metavar="RELEASE", help="in a bare system of this release, such as trixie")
    given = parser.parse_args()
    if given.debian and given.python:
        parser.error("--debian brings its own Python: name one of the two")
    return given


def made(folder):
    told = subprocess.run([ROOT / "scripts/wheel.sh", "--to", folder, pathlib.Path(BIN).parent], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return pathlib.Path(told.splitlines()[-1])


def torches_of(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    found = {match[1] for name in names if (match := re.fullmatch(r"espalier/lib/torch-([\d.]+)/libespalier_torch\.so", name))}
    return sorted(found, key=lambda minor: [int(number) for number in minor.split(".")])


def bare_debian(release, folder):
    """The folder of a new system, in which there is Python."""
    if shutil.which("debootstrap") is None:
        sys.exit("install: --debian needs debootstrap, which is not installed: apt-get install debootstrap")
    system = pathlib.Path(folder) / release
    subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", release, system], check=True,
                   stdout=subprocess.DEVNULL)
    shutil.copy("/etc/resolv.conf", system / "etc/resolv.conf")
    shutil.copy(f"/{CERTIFICATES}", system / CERTIFICATES)  # with those that this machine has been told to trust
    return system


def in_cell(command):
    """The cell's figures; None where it fails, which is told."""
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    print(done.stdout, end="", flush=True)
    return None


def run_cell(system, python, wheel, torch, folder):
    if system is None:
        return in_cell([python, CELL, folder, wheel, FIVE_LINES, torch])
    files = [shutil.copy(file, system / "tmp") for file in (CELL, wheel, FIVE_LINES)]
    cell, inner_wheel, five_lines = (pathlib.Path("/tmp") / pathlib.Path(file).name for file in files)
    try:
        return in_cell([*WITHIN, system, "python3", cell, "/tmp/cell", inner_wheel, five_lines, torch])
    finally:
        shutil.rmtree(system / "tmp/cell", ignore_errors=True)


def main():
    given = options()
    with tempfile.TemporaryDirectory(prefix="espalier-install-") as folder:
        wheel = given.wheel.resolve() if given.wheel else made(folder)
        python = given.python or "/usr/bin/python3"
        torches = [f"torch=={minor}.*" for minor in given.torch or torches_of(wheel)]
        if SMOKE:  # the torch that is there, which asks nothing of an index
            python, environment = torch_python()
            where = "import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])"
            torches = [subprocess.run([python, "-c", where], check=True, text=True, stdout=subprocess.PIPE,
                                      env=environment).stdout.strip()]
        system = bare_debian(given.debian, folder) if given.debian else None
        cells = {}
        for number, torch in enumerate(torches):
            here = pathlib.Path(folder) / f"cell-{number}"
            figures = cells[torch] = run_cell(system, python, wheel, torch, here)
            print(given.debian or python, torch, figures or "FAILED", flush=True)
            shutil.rmtree(here, ignore_errors=True)
        passed = [figures for figures in cells.values() if figures]
        print(json.dumps({
            "wheel_mb": round(wheel.stat().st_size / 1e6, 2), "cells": len(cells), "passed": len(passed),
            "five_lines_s": max((figures["install_s"] + figures["run_s"] for figures in passed), default=None),
            "torches": [figures["torch"] for figures in passed]}))
    if len(passed) < len(cells):
        sys.exit(1)


if __name__ == "__main__":
    main()
