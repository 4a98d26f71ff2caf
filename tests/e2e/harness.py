"""What the end-to-end tests share: real processes of `tuner`, waited for by condition."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

BIN = pathlib.Path(os.environ["ESPALIER_BIN"])
ROOT = pathlib.Path(__file__).resolve().parents[2]
TUNER = str(BIN / "tuner")
PATIENCE_S = 120  # after which a condition that has not come true is a failure
TOLD_LINES = 40  # of each process that a failed test has started


def wait_for(condition, what, patience_s=PATIENCE_S):
    """Polls until condition() is true; returns its value."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {patience_s} s in vain for: {what}")


# Goes on from what it wrote down last, as a program with checkpoints of its own does. What it writes down appears as a
# whole: a kill between emptying the file and filling it would leave a program that has nothing to do.
RESUMABLE = """#!/bin/bash
state={log}/$ESPALIER_TRIAL_NUMBER
step=$(cat $state 2>/dev/null || echo 0)
while [ $step -lt {steps} ]; do
  step=$((step + 1))
  tuner tell --step $step --value 0.$step || exit 1
  echo $step > $state.new && mv $state.new $state
  {also}
  sleep {pause}
done
"""


class TunerTest(unittest.TestCase):
    """A folder of its own for each test; every process that it started is gone at its end. What they printed last is
    shown where the test fails."""

    _last_printed = ""  # also of benchmarks, which are not run as tests are

    def run(self, result=None):
        failed = lambda: result is not None and len(result.failures) + len(result.errors)
        before = failed()
        ended = super().run(result)
        if failed() != before:
            print(f"\n==== what the processes of {self.id()} printed{self._last_printed}", file=sys.stderr, flush=True)
        return ended

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="espalier-e2e-"))
        self.processes = []

    def tearDown(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
            self._last_printed += f"\n==== {' '.join(map(str, process.args))[:400]}\n{self.last_lines(process)}"
        shutil.rmtree(self.dir, ignore_errors=True)

    def last_lines(self, process):
        if getattr(process, "out", None) is None:
            return ""
        return "\n".join(pathlib.Path(process.out).read_text(errors="replace").splitlines()[-TOLD_LINES:])

    def write(self, name, text, mode=0o644):
        path = self.dir / name
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        path.chmod(mode)
        return str(path)

    def resumable_trial(self, steps, pause, also=":"):
        """A program of so many steps that goes on where it was stopped; each trial's last one is in the folder steps."""
        (self.dir / "steps").mkdir(exist_ok=True)
        return self.write("trial.sh", RESUMABLE.format(steps=steps, pause=pause, also=also, log=self.dir / "steps"),
                          0o755)

    def study(self, command, **keys):
        """A small study file of `command`, with defaults that `keys` override."""
        spec = {
            "name": "e2e",
            "command": command,
            "metric": {"name": "loss", "direction": "minimize"},
            "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
            "sampler": "random",
            "trials": 4,
            "seed": 1,
        }
        spec.update(keys)
        return self.write("study.json", {k: v for k, v in spec.items() if v is not None})

    def start(self, *arguments, **keys):
        path = self.dir / f"out-{len(self.processes)}.txt"
        env = dict(os.environ, **keys.pop("env", {}))
        command = [*keys.pop("prefix", []), TUNER, *map(str, arguments)]
        with open(path, "w") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=subprocess.STDOUT, env=env, **keys)
        process.out = path
        self.processes.append(process)
        return process

    def output(self, process):
        return pathlib.Path(process.out).read_text()

    def run_tuner(self, *arguments, code=0, timeout=PATIENCE_S, env=None, prefix=()):
        done = subprocess.run([*prefix, TUNER, *map(str, arguments)], stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=timeout, env=dict(os.environ, **(env or {})))
        self.assertEqual(done.returncode, code,
                         f"tuner {' '.join(map(str, arguments))}\n{done.stdout}\n{done.stderr}")
        return done

    def finish(self, process, code=0):
        try:
            self.assertEqual(process.wait(timeout=PATIENCE_S), code, self.output(process))
        except subprocess.TimeoutExpired:
            self.fail(f"still running after {PATIENCE_S} s:\n{self.output(process)}")

    def export(self, *where, study="e2e"):
        return json.loads(self.run_tuner("export", study, *where, "--format", "json").stdout)

    def serve(self, database, grpc=None, http=None, options=()):
        """Starts a service and waits until it answers: on the named addresses, or on ports that it finds."""
        process = self.start("serve", "--grpc", grpc or "127.0.0.1:0", "--http", http or "127.0.0.1:0",
                             "--db", database, *options)
        self.grpc = grpc or self.told_address(process, "gRPC")
        self.http = http or self.told_address(process, "HTTP")
        self.wait_service(process)
        return process

    def told_address(self, process, endpoint):
        """HOST:PORT of one of a service's endpoints (gRPC, HTTP, dashboard), as the service prints it."""
        def told():
            self.assertIsNone(process.poll(), self.output(process))
            return re.search(rf"^{endpoint} (?:\w+://)?([^\s/]+)[/\w]*\n", self.output(process), re.MULTILINE)
        return wait_for(told, f"the service to print its {endpoint} address")[1]

    def unanswered_address(self):
        """HOST:PORT at which nobody answers until the test ends: the port is taken, and nothing listens there."""
        holder = socket.socket()
        self.addCleanup(holder.close)
        holder.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{holder.getsockname()[1]}"

    def wait_service(self, process):
        def answers():
            self.assertIsNone(process.poll(), self.output(process))
            return subprocess.run([TUNER, "ls", "--service", self.grpc], capture_output=True).returncode == 0
        wait_for(answers, "the service to answer")

    def agent(self, slots, name="node", options=(), **keys):
        return self.start("agent", "--join", self.grpc, "--http", self.http, "--slots", slots,
                          "--name", name, "--dir", self.dir / f"agent-{name}", *options, **keys)


class EngineTest(TunerTest):
    """Of a service whose engine starts the nodes."""

    def submit(self, steps, trials, pause=0.2):
        script = self.resumable_trial(steps, pause, also='echo "$step" >> $state.all')
        self.run_tuner("submit", self.study([script], trials=trials), "--service", self.grpc)

    def pool(self):
        with urllib.request.urlopen(f"http://{self.http}/api/pool") as answer:
            return json.load(answer)

    def nodes(self):
        return [node["name"] for node in self.pool().get("nodes", []) if node["connected"]]


def processes():
    """(pid, parent, command line as a list of words) of all that run."""
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The name in parentheses, then the state and the parent.
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            yield int(entry.name), parent, (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except (OSError, ValueError):
            continue


def environment_of(pid):
    """Its variables as bytes, or none where it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def zygotes_of(root_pid, program):
    """Pids of the processes below root_pid that are only there to be forked."""
    return [pid for pid in _below(root_pid, program) if b"ESPALIER_ZYGOTE=1" in environment_of(pid)]


def replicas_of(root_pid, program):
    """Pids of the processes below root_pid whose command line holds `program`."""
    return [pid for pid in _below(root_pid, program) if b"ESPALIER_ZYGOTE=1" not in environment_of(pid)]


def _below(root_pid, program):
    found = []
    children = {}
    for pid, parent, words in processes():
        children.setdefault(parent, []).append((pid, "\0".join(words)))
    todo = [root_pid]
    while todo:
        for pid, line in children.get(todo.pop(), []):
            todo.append(pid)
            if program in line:
                found.append(pid)
    return sorted(found)


def kill(pid, sig=signal.SIGKILL):
    try:
        os.kill(pid, sig)
        return True
    except ProcessLookupError:
        return False
