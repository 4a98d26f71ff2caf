"""How the benchmark samplers calls ours, by bench_sampler_trials, and Optuna's."""
import json
import os
import pathlib
import subprocess

from bench_run import BIN

PROGRAM = os.path.join(BIN, "bench_sampler_trials")
PEERS = pathlib.Path(__file__).parent / "peers" / "optuna_samplers.py"
# Optuna's by the names in its record, and what a study file says for ours.
SAME = {
    "random": ("random", {}),
    "grid": ("grid", {"points": 10}),
    "brute_force": ("brute_force", {}),
    "qmc": ("qmc", {}),
    "tpe": ("tpe", {}),
    "tpe_univariate": ("tpe", {"multivariate": 0}),
    "tpe_group": ("tpe", {"group": 1}),
    "cmaes": ("cmaes", {}),
    "nsga2": ("nsga2", {}),
    "nsga3": ("nsga3", {}),
    "gp": ("gp", {}),
}


# Optuna's is told, too, that the same parameters give the same value.
WITHOUT_NOISE = {name: {"deterministic_objective": 1} for name in ("gp", "auto")}


def ours(name, noisy=True):
    """What a study file says: a sampler and its options."""
    sampler, options = SAME.get(name, (name, {}))
    return sampler, options | ({} if noisy else WITHOUT_NOISE.get(sampler, {}))


def call(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def call_sampler(what, name, *arguments, noisy=True):
    sampler, options = ours(name, noisy)
    return call(what, sampler, *arguments, *(f"{option}={value}" for option, value in options.items()))


def in_table(name):
    """Whether our table has it."""
    try:
        return bool(call_sampler("speed", name, 1, 1, 1))
    except subprocess.CalledProcessError as error:
        if error.returncode != 2:
            raise
        return False


def call_peers(*arguments, script=PEERS.name):
    python = os.environ.get("ESPALIER_SAMPLER_PEERS")
    if not python:
        setup = PEERS.with_name("setup_samplers.sh")
        python = subprocess.run([setup], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    done = subprocess.run([python, "-B", PEERS.with_name(script), *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout
