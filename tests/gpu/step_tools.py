"""What the steps for a machine with a GPU are made of: the table of them, programs and their output, services, agents
and what replicas write down. Standard library only."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = {}   # name: {step: (seconds, function)}


class Skipped(Exception):
    """The step has nothing to run here, and why."""


def step(part, limit_s):
    def add(function):
        PARTS.setdefault(part, {})[function.__name__] = (limit_s, function)
        return function
    return add


def binary(name):
    path = pathlib.Path(os.environ["ESPALIER_BIN"]) / name
    if not path.exists():
        raise Skipped(f"{name} was not built")
    return str(path)


def output_of(command, **more):
    """What the command prints; an error with its last lines if it fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)
    print(done.stdout, flush=True)
    if done.returncode != 0:
        raise AssertionError(f"{pathlib.Path(str(command[0])).name} ended with {done.returncode}: "
                             + " | ".join(done.stdout.splitlines()[-5:]))
    return done.stdout


def on_its_own(**variables):
    """The environment of a program that no agent starts: it is on the first GPU, and so are replicas that it starts."""
    visible = {"CUDA_VISIBLE_DEVICES": "0"} if device() == "cuda" else {}
    return os.environ | {"ESPALIER_TEST_DEVICE": device()} | visible | variables


def google_test(name, *arguments):
    probe = pathlib.Path(os.environ["ESPALIER_BIN"]) / "elastic_probe"
    out = output_of([binary(name), *arguments], env=on_its_own(ELASTIC_PROBE=str(probe)))
    counts = {word: int(number) for word, number in re.findall(r"\[\s+(PASSED|SKIPPED)\s+\] (\d+) test", out)}
    if not any(counts.values()):
        raise AssertionError(f"{name} {arguments}: there is no such test")
    return {"passed": counts.get("PASSED", 0), "skipped": counts.get("SKIPPED", 0)}


def device():
    return os.environ.get("ESPALIER_TEST_DEVICE", "cuda")


def need_gpu():
    if device() != "cuda":
        raise Skipped("it needs a GPU")


def median(values):
    return sorted(values)[len(values) // 2]


@contextlib.contextmanager
def service(folder):
    """A service on a port of its own choice; yields its address."""
    process = subprocess.Popen([binary("tuner"), "serve", "--grpc", "127.0.0.1:0", "--db", str(folder / "db")],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"event=service_started grpc=(\S+)", line):
                break
        else:
            raise AssertionError(f"the service did not start: {' '.join(said)[-500:]}")
        # What it says later is read as well: a full pipe would hold it up.
        threading.Thread(target=lambda: print(process.stderr.read()), daemon=True).start()
        yield found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@contextlib.contextmanager
def agent(folder, address, name, *flags, **variables):
    with open(folder / f"{name}.log", "w", encoding="utf-8") as out:
        process = subprocess.Popen([binary("tuner"), "agent", "--join", address, "--name", name, "--dir", str(folder / name),
                                    *map(str, flags)], stdout=out, stderr=out, env=os.environ | variables)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)


def exported(address):
    return json.loads(output_of([binary("tuner"), "export", "gpu", "--format", "json", "--service", address]))["trials"]


def device_memory_of(trials):
    return max((int(trial.get("device_memory_bytes", 0)) for trial in trials), default=0)


def slots(each):
    return ["--gpus", "0", "--slots-per-gpu", each] if device() == "cuda" else ["--slots", each]


def steps_in_file(path):
    """What bench_resize_trial has written: [(time, generation, rank, replicas, step)]."""
    text = path.read_text(encoding="utf-8")
    lines = [line.split() for line in text[:text.rfind("\n") + 1].splitlines()]
    return [(float(line[0]), *map(int, line[1:])) for line in lines]


def steps_in(logs):
    return {int(path.name): steps_in_file(path) for path in logs.iterdir()}


def await_step(logs, what, suits, patience_s=60):
    """The first step that suits."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        found = sorted(step for mine in steps_in(logs).values() for step in mine if suits(step))
        if found:
            return found[0]
        time.sleep(0.05)
    raise AssertionError(f"no step of {what} within {patience_s} s")


def python():
    """The interpreter of programs in Python, and the environment in which they find Espalier and PyTorch."""
    sys.path.insert(0, str(ROOT / "tests" / "benchmarks"))
    from bench_run import torch_python  # pylint: disable=import-outside-toplevel
    interpreter, environment = torch_python()
    return interpreter, {name: environment[name] for name in ("PYTHONPATH", "ESPALIER_TORCH_LIBRARY", "ESPALIER_THREADS")}
