"""What the steps for a machine with a GPU are made of: the table of them and their bars, programs and their output,
services, agents and what replicas write down. Standard library only."""
import contextlib
import fnmatch
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
COUNTER = "libespalier_cuda_calls.so"
PARTS = {}   # name: {step: Step}


class Skipped(Exception):
    """The step has nothing to run here, and why."""


class Bar(typing.NamedTuple):
    """What a figure of a step has to reach on a GPU."""
    sign: str
    bound: float

    def __str__(self):
        return f"{self.sign} {self.bound:g}"

    def is_met_by(self, figure):
        return figure <= self.bound if self.sign == "<=" else figure >= self.bound


def at_most(bound):
    return Bar("<=", bound)


def at_least(bound):
    return Bar(">=", bound)


class Step(typing.NamedTuple):
    limit_s: float
    function: typing.Callable
    bars: dict  # figure, or a pattern of figures' names: Bar


def step(part, limit_s, bars=None, name=None):
    """Puts a function into the table, by its own name if it is given none. It returns figures by their names."""
    def add(function):
        PARTS.setdefault(part, {})[name or function.__name__] = Step(limit_s, function, bars or {})
        return function
    return add


def judged(bars, figures):
    """Each bar beside the figures that it is for. It is about a GPU: nothing is judged on the CPU."""
    found = []
    for pattern, bar in bars.items():
        named = {name: figure for name, figure in figures.items() if fnmatch.fnmatchcase(name, pattern)}
        for name, figure in (named or {pattern: None}).items():
            met = "not judged" if device() != "cuda" else "not measured" if figure is None else bar.is_met_by(figure)
            found.append({"figure": name, "value": figure, "bar": str(bar), "met": met})
    return found


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


def rows_of(out, columns):
    """The lines that are so many numbers or more, and nothing else."""
    return [[float(word) for word in line.split()] for line in out.splitlines()
            if re.match(rf"^[0-9.e-]+( [0-9.e-]+){{{columns - 1},}}$", line)]


def on_its_own(**variables):
    """The environment of a program that no agent starts: it is on the first GPU, and so are replicas that it starts."""
    visible = {"CUDA_VISIBLE_DEVICES": "0"} if device() == "cuda" else {}
    return os.environ | {"ESPALIER_TEST_DEVICE": device()} | visible | variables


@contextlib.contextmanager
def cuda_counter():
    """What LD_PRELOAD is to be for a program whose calls of CUDA are counted. It takes paths apart at spaces, which
    the bundle's folder may have, so the counter gets another name meanwhile."""
    programs = pathlib.Path(os.environ["ESPALIER_BIN"])
    found = [path for path in (programs / "lib" / COUNTER, programs.parent / "lib" / COUNTER) if path.exists()]
    if not found:
        raise Skipped("the counter was not built")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        name = pathlib.Path(folder) / COUNTER
        name.symlink_to(found[0].resolve())
        yield str(name)


def google_test(name, *arguments, on_host=(), replicas=False, says=""):
    """Runs a test program, and makes sure that it was on the device: each suite, but those that are `on_host`, has a test
    that has recorded it (tests/trial_runner/torch/test_device.h). `replicas`: the tests start replicas, which say it.
    `says`: what each test that passes has said."""
    probe = pathlib.Path(os.environ["ESPALIER_BIN"]) / "elastic_probe"
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "record.json"
        out = output_of([binary(name), *arguments, f"--gtest_output=json:{record}"], env=on_its_own(ELASTIC_PROBE=str(probe)))
        suites = json.loads(record.read_text(encoding="utf-8"))["testsuites"]
    tests = [test for suite in suites for test in suite["testsuite"]]
    if not tests:
        raise AssertionError(f"{name} {arguments}: there is no such test")
    said = {suite["name"]: {test.get("device", "nothing") for test in suite["testsuite"]} for suite in suites
            if not any(fnmatch.fnmatchcase(suite["name"], pattern) for pattern in on_host)}
    if replicas:
        said = {name: set(re.findall(r"^on (\S+)$", out, re.MULTILINE)) or {"nothing"}}
    for suite, devices in said.items():
        if not (all if replicas else any)(where.startswith(device()) for where in devices):
            raise AssertionError(f"{suite} is to be on {device()}, and its tests say that they were on: "
                                 + ", ".join(sorted(devices)))
    if says and out.count(says) < len(tests):
        raise AssertionError(f"\"{says}\" was said {out.count(says)} times in {len(tests)} tests")
    skipped = sum(test.get("result") == "SKIPPED" for test in tests)
    return {"passed": len(tests) - skipped, "skipped": skipped}


def device():
    return os.environ.get("ESPALIER_TEST_DEVICE", "cuda")


def on_the_device(where):
    if not str(where).startswith(device()):
        raise AssertionError(f"it was on {where}, and is to be on {device()}")


def need_gpu():
    if device() != "cuda":
        raise Skipped("it needs a GPU")


def median(values):
    return sorted(values)[len(values) // 2]


@contextlib.contextmanager
def service(folder):
    """A service on a port of its own choice; yields its address."""
    process = subprocess.Popen([binary("tuner"), "serve", "--grpc", "127.0.0.1:0", "--db", str(folder / "db"), "--lease",
                                "60"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
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
        process.wait(60)


def replica_lease():
    """The agent's own on a GPU, or none: beside other tests a replica that does not hang may be kept from its word."""
    return [] if device() == "cuda" else ["--replica-lease", 0]


@contextlib.contextmanager
def agent(folder, address, name, *flags, **variables):
    if "--replica-lease" not in flags:
        flags = [*flags, *replica_lease()]
    with open(folder / f"{name}.log", "w", encoding="utf-8") as out:
        process = subprocess.Popen([binary("tuner"), "agent", "--join", address, "--name", name, "--dir", str(folder / name),
                                    *map(str, flags)], stdout=out, stderr=out, env=os.environ | variables)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:  # what it writes goes with the folder
            process.kill()
            process.wait()


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


def await_that(what, look, patience_s=60, every_s=0.05):
    """Looks until there is something, which it returns."""
    patience_s *= float(os.environ.get("ESPALIER_TEST_PATIENCE", "1"))
    end = time.monotonic() + patience_s
    while not (found := look()):
        if time.monotonic() > end:
            raise AssertionError(f"no {what} within {patience_s:g} s")
        time.sleep(every_s)
    return found


def await_step(logs, what, suits):
    """The first step that suits."""
    def first():
        return min((step for mine in steps_in(logs).values() for step in mine if suits(step)), default=None)
    return await_that(f"step of {what}", first)


def python():
    """The interpreter of programs in Python, and the environment in which they find Espalier and PyTorch."""
    sys.path.insert(0, str(ROOT / "tests" / "benchmarks"))
    from bench_run import torch_python  # pylint: disable=import-outside-toplevel
    interpreter, environment = torch_python()
    return interpreter, {name: environment[name] for name in ("PYTHONPATH", "ESPALIER_TORCH_LIBRARY", "ESPALIER_THREADS")}
