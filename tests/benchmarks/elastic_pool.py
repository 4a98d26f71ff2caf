"""A service, an agent and one elastic trial on it whose replicas write down each step: what the
benchmarks of resizing, losses and throughput look at."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import typing

from bench_run import BIN, PATIENT_AGENT, TUNER, serve, told_address, torch_python

STUDY = "bench"


class Step(typing.NamedTuple):
    """As bench_resize_trial writes it."""
    time: float  # monotonic seconds at the step's end
    generation: int
    rank: int
    replicas: int
    step: int


class Pool:
    """`study` is what a study file says, besides what is the same for all benchmarks. A command's
    LOGS stands for the folder that replicas write their steps to."""

    def __init__(self, folder, study, slots, agent_flags=(), environment=()):
        self.logs = folder / "logs"
        self.logs.mkdir()
        self.read = {}   # file: bytes read so far
        self.seen = {}   # pid: its steps so far
        self.start(folder, slots, agent_flags, dict(environment))
        path = folder / "study.json"
        path.write_text(json.dumps({
            "name": STUDY, "metric": {"name": "v", "direction": "minimize"}, "sampler": "random", "trials": 1,
            "max_restarts": 0, "search_space": {"lr": {"_type": "uniform", "_value": [0.01, 0.02]}},
            **study, "command": [str(self.logs) if w == "LOGS" else w for w in study["command"]]}))
        self.wait(lambda: self.tuner("submit", path).returncode == 0)

    def start(self, folder, slots, agent_flags, environment):
        self.service = serve(folder / "db")
        self.grpc = told_address(self.service)
        # Shares of one GPU where tests/gpu says so.
        if "--replica-lease" not in agent_flags:
            agent_flags = [*agent_flags, *PATIENT_AGENT]
        made_of = ["--gpus", "0", "--slots-per-gpu"] if os.environ.get("ESPALIER_TEST_DEVICE") == "cuda" else ["--slots"]
        self.agent = subprocess.Popen([TUNER, "agent", "--join", self.grpc, *made_of, str(slots), "--name",
                                       "n", "--dir", str(folder / "agent"), *map(str, agent_flags)],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      env=os.environ | environment | {"ESPALIER_THREADS": "1"})

    def tuner(self, verb, *arguments):
        return subprocess.run([TUNER, verb, *map(str, arguments), "--service", self.grpc],
                              capture_output=True, text=True)

    def wait(self, condition, patience_s=120):
        end = time.monotonic() + patience_s
        while not (value := condition()):
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.02)
        return value

    def steps(self):
        """{pid: its steps}; reads what is new, whole lines only."""
        for path in self.logs.iterdir():
            with open(path, "rb") as file:
                file.seek(self.read.get(path, 0))
                new = file.read()
            new = new[:new.rfind(b"\n") + 1]
            self.read[path] = self.read.get(path, 0) + len(new)
            mine = self.seen.setdefault(int(path.name), [])
            for line in new.splitlines():
                words = line.split()
                mine.append(Step(float(words[0]), *map(int, words[1:])))
        return self.seen

    def last(self):
        """The newest step of anybody, or None."""
        return max((s[-1] for s in self.steps().values() if s), default=None)

    def trial(self):
        """The study's one trial, as exported."""
        trials = json.loads(self.tuner("export", STUDY, "--format", "json").stdout)["trials"]
        return trials[0] if trials else {}

    def await_size(self, slots, settle_steps=5):
        """Waits until some steps of that size are done."""
        def settled():
            last = self.last()
            if not last or last.replicas != slots:
                return False
            mine = next(s for s in self.seen.values() if s and s[-1] == last)
            return len(mine) >= settle_steps and mine[-settle_steps].generation == last.generation
        self.wait(settled)

    def pin(self, slots):
        self.tuner("pin", STUDY, 0, "--slots", slots)
        self.await_size(slots)

    def resize(self, slots):
        """From another number of slots, on which it has trained."""
        request = time.clock_gettime(time.CLOCK_MONOTONIC)
        self.pin(slots)
        return change(self.steps(), request, slots)

    def members(self):
        """The pids of the present group's replicas, by rank."""
        generation = max(s[-1].generation for s in self.steps().values() if s)
        return {s[-1].rank: pid for pid, s in self.steps().items() if s and s[-1].generation == generation}

    def close(self):
        self.agent.send_signal(signal.SIGTERM)
        self.agent.wait()
        self.service.kill()
        self.service.wait()


@contextlib.contextmanager
def start_study(study, slots, agent_flags=(), environment=()):
    """A pool whose study has been submitted."""
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool(pathlib.Path(folder), study, slots, agent_flags, environment)
        try:
            yield pool
        finally:
            pool.close()


def in_cpp():
    """The program of workloads.h, and what its environment has besides."""
    return [os.path.join(BIN, "bench_resize_trial")], {}


def in_python():
    """The same program in Python."""
    python, environment = torch_python()
    return [python, os.path.abspath("python_trial.py")], environment


@contextlib.contextmanager
def start_pool(workload, slots, agent_flags=(), program=in_cpp):
    """A pool with a trial that trains one of workloads.h and has begun."""
    command, environment = program()
    with start_study({"command": [*command, "LOGS", workload]}, slots, agent_flags, environment) as pool:
        pool.wait(pool.last)
        yield pool


class Change(typing.NamedTuple):
    """How a trial came from one size to another."""
    old: int
    new: int
    still_s: float    # from the last step of the old size to the first of the new one: training stands still
    request_s: float  # from the request to the first step of the new size


def change(steps, request, new):
    """The first change to `new` replicas after the monotonic moment of the request, or None if no step
    of that size is done yet."""
    every = sorted(step for mine in steps.values() for step in mine)
    first = next((s for s in every if s.time > request and s.replicas == new), None)
    if first is None:
        return None
    last = max((s for s in every if s.generation < first.generation), key=lambda s: s.time)
    return Change(last.replicas, new, first.time - last.time, first.time - request)
