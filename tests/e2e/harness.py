"""What the end-to-end tests share: real processes of `tuner`, waited for by condition."""
import json
import os
import pathlib
import re
import shlex
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
LONG_S = 300  # the same for trainings that keep a processor busy for half a minute where it has nothing else to do
# Of nodes and replicas where a test is not about that: on a loaded machine a process may stand still for longer than the
# usual 10 s and 5 s.
LEASE_S = PATIENCE_S // 2
TOLD_LINES = 40  # of each process that a failed test has started
KEPT_FILES = ("out-*.txt", "*.log", "study.json")  # of a failed test: what its processes and trials printed, what they ran


def tuner_command(*arguments):
    """Of `tuner`, as a list of words. Replicas have LEASE_S unless it says otherwise."""
    verb, *others = map(str, arguments)
    starts_replicas = verb in ("agent", "run") and not {"--replica-lease", "--replace"} & set(others)
    return [TUNER, verb, *(["--replica-lease", str(LEASE_S)] if starts_replicas else []), *others]


def wait_for(condition, what, patience_s=PATIENCE_S):
    """Polls until condition() is true, also once more after patience_s: this process may have stood still. Returns its value.
    What takes long to ask, as a process does, is asked less often: what is waited for has the processors."""
    end = time.monotonic() + patience_s
    while True:
        asked = time.monotonic()
        value = condition()
        if value:
            return value
        if asked >= end:
            raise AssertionError(f"waited {patience_s} s in vain for: {what}")
        time.sleep(min(max(0.02, 2 * (time.monotonic() - asked)), 0.3))


# Goes on from what it wrote down last, as a program with checkpoints of its own does. One write is both the state and the
# record of all its steps: were they two, a signal between them would make them differ.
RESUMABLE = """#!/bin/bash
state={log}/$ESPALIER_TRIAL_NUMBER
step=$(tail -n 1 $state 2>/dev/null)
step=${{step:-0}}
while [ $step -lt {steps} ]; do
  step=$((step + 1))
  tuner tell --step $step --value 0.$step || exit 1
  echo $step >> $state
  {also}
  sleep {pause}
done
"""


# Of a Python program that finds it on its path: each loss takes its time until the file {seen} is there, so that no training
# ends before the test has seen what it wants to see of it.
SLOW_LOSSES = """
import pathlib, time
import torch.nn.functional
entropy = torch.nn.functional.cross_entropy

def slowly(*arguments, **keys):
    if not pathlib.Path({seen!r}).exists():
        time.sleep(0.1)
    return entropy(*arguments, **keys)

torch.nn.functional.cross_entropy = slowly
"""


class TunerTest(unittest.TestCase):
    """A folder of its own for each test; every process that it started is gone at its end. What they printed last is
    shown where the test fails."""

    _last_printed = ""  # also of benchmarks, which are not run as tests are

    _result, _faults_before = None, 0

    def run(self, result=None):
        self._result = result
        self._faults_before = self._faults()
        ended = super().run(result)
        if self._has_failed():
            print(f"\n==== what the processes of {self.id()} printed{self._last_printed}", file=sys.stderr, flush=True)
        return ended

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="espalier-e2e-"))
        self.processes = []

    def be_in_folder(self):
        """The test runs within its folder; `tuner` is on its path."""
        os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.dir)

    def tearDown(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
            self._keep_last_lines(process)
        if self._has_failed():
            self._keep_logs(self.dir)
        shutil.rmtree(self.dir, ignore_errors=True)

    def _faults(self):
        return 0 if self._result is None else len(self._result.failures) + len(self._result.errors)

    def _has_failed(self):
        """So far; who is no test, as the pool that tests share, has not."""
        return self._faults() != self._faults_before

    def _keep_logs(self, folder):
        """Whole, where scripts/test.sh wants those of failed tests, so that none has to be run again to be understood."""
        if "ESPALIER_FAILED_LOGS" not in os.environ:
            return
        to = pathlib.Path(os.environ["ESPALIER_FAILED_LOGS"]) / self.id().replace("__main__", pathlib.Path(sys.argv[0]).stem)
        for pattern in KEPT_FILES:
            for path in folder.rglob(pattern):
                kept = to / path.relative_to(folder)
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, kept)

    def _keep_last_lines(self, process):
        self._last_printed += f"\n==== {' '.join(map(str, process.args))[:400]}\n{self.last_lines(process)}"

    def last_lines(self, process):
        if getattr(process, "out", None) is None:
            return ""
        return "\n".join(pathlib.Path(process.out).read_text(errors="replace").splitlines()[-TOLD_LINES:])

    def write(self, name, text, mode=0o644):
        """A file of the test's folder, in one step: one that runs cannot be written to."""
        path, fresh = self.dir / name, self.dir / f"{name}.new"
        fresh.write_text(text if isinstance(text, str) else json.dumps(text))
        fresh.chmod(mode)
        fresh.replace(path)
        return str(path)

    def resumable_trial(self, steps, pause, also=":"):
        """A program of so many steps that goes on where it was stopped; taken() are those of each trial."""
        (self.dir / "steps").mkdir(exist_ok=True)
        return self.write("trial.sh", RESUMABLE.format(steps=steps, pause=pause, also=also, log=self.dir / "steps"),
                          0o755)

    def until_go(self):
        """`also` that keeps a resumable trial at its fifth step, or at the first one that it takes after a move, until go():
        none ends, and so no node goes, before all that is to be seen of them has been seen."""
        return f"while [ $step -ge 5 ] && [ ! -e {self.dir}/go ]; do sleep 0.05; done"

    def go(self):
        (self.dir / "go").touch()

    def taken(self, trial):
        """The steps that a resumable trial has taken, in the order in which it took them."""
        path = self.dir / "steps" / str(trial)
        return [int(step) for step in path.read_text().split()] if path.exists() else []

    def slow_losses(self, also_first=""):
        """Of Python programs that have self.dir on their path. The file upon which they go on as they are."""
        seen = self.dir / "seen"
        self.write("sitecustomize.py", also_first + SLOW_LOSSES.format(seen=str(seen)))
        return seen

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
        command = [*keys.pop("prefix", []), *tuner_command(*arguments)]
        with open(path, "w") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=subprocess.STDOUT, env=env, **keys)
        process.out = path
        self.processes.append(process)
        return process

    def output(self, process):
        return pathlib.Path(process.out).read_text()

    def run_tuner(self, *arguments, code=0, timeout=PATIENCE_S, env=None, prefix=()):
        done = subprocess.run([*prefix, *tuner_command(*arguments)], stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=timeout, env=dict(os.environ, **(env or {})))
        self.assertEqual(done.returncode, code,
                         f"tuner {' '.join(map(str, arguments))}\n{done.stdout}\n{done.stderr}")
        return done

    def grow_to_two(self, *where, study="e2e", number=0):
        """Has a trial, once it is there, train on one slot and then on two. Left alone it may have both from the beginning,
        where its program takes long to start, and a busy machine looks like no place for two."""
        before = len(self.shrink_to_one(*where, study=study, number=number)["resizes"])
        self.run_tuner("pin", study, number, "--slots", 2, *where)
        wait_for(lambda: (2, False) in [(r["to_replicas"], r["after_loss"])
                                        for r in self.export(*where, study=study)["trials"][number]["resizes"][before:]],
                 "the trial to grow", LONG_S)

    def shrink_to_one(self, *where, study="e2e", number=0):
        """Has a trial, once it is there, train on one slot; what is known of it then."""
        def trial():
            return next(iter(self.export(*where, study=study)["trials"][number:]), None)
        wait_for(trial, "the trial")
        self.run_tuner("pin", study, number, "--slots", 1, *where)
        return wait_for(lambda: (t := trial())["generation"] > 0 and t["slots"] == 1 and t, "the trial to train on one slot",
                        LONG_S)

    def beside_a_neighbour(self, folder, command):
        """The command of a study of two trials on two slots, whose folder that is. Trial 1 is the one that is meant: 0 keeps
        a slot until 1 has saved a checkpoint, so that 1 trains on one slot first, and then may grow."""
        return [self.write("neighbour.sh", f"""#!/bin/sh
if [ "$ESPALIER_TRIAL_NUMBER" = 1 ]; then exec {shlex.join(map(str, command))}; fi
until ls {folder}/trial-1/checkpoints/step-*.pt >/dev/null 2>&1; do sleep 0.1; done
tuner tell --final --value 0.5
""", 0o755)]

    def finish(self, process, code=0):
        try:
            self.assertEqual(process.wait(timeout=PATIENCE_S), code, self.output(process))
        except subprocess.TimeoutExpired:
            self.fail(f"still running after {PATIENCE_S} s:\n{self.output(process)}")

    def export(self, *where, study="e2e"):
        return json.loads(self.run_tuner("export", study, *where, "--format", "json").stdout)

    def serve(self, database, grpc=None, http=None, options=()):
        """Starts a service and waits until it answers: on the named addresses, or on new ones."""
        self.grpc, self.http = grpc or self.held_address(), http or self.held_address()
        process = self.start("serve", "--grpc", self.grpc, "--http", self.http, "--db", database, *options)
        self.wait_service(process)
        return process

    def told_address(self, process, endpoint):
        """HOST:PORT of one of a service's endpoints (gRPC, HTTP, dashboard), as the service prints it."""
        def told():
            self.assertIsNone(process.poll(), self.output(process))
            return re.search(rf"^{endpoint} (?:\w+://)?([^\s/]+)[/\w]*\n", self.output(process), re.MULTILINE)
        return wait_for(told, f"the service to print its {endpoint} address")[1]

    def held_address(self, host="127.0.0.1"):
        """HOST:PORT that the kernel gives nobody else until the test ends. A service may listen there, and another after
        it: while none does, a port that it had found itself could be anybody's."""
        holder = socket.socket()
        self.addCleanup(holder.close)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((host, 0))
        return f"{host}:{holder.getsockname()[1]}"

    def unanswered_address(self):
        """HOST:PORT at which nobody answers until the test ends: the port is taken, and nothing listens there."""
        return self.held_address()

    def wait_service(self, process):
        def answers():
            self.assertIsNone(process.poll(), self.output(process))
            return subprocess.run([TUNER, "ls", "--service", self.grpc], capture_output=True).returncode == 0
        wait_for(answers, "the service to answer")

    def agent(self, slots, name="node", options=(), **keys):
        return self.start("agent", "--join", self.grpc, "--http", self.http, "--slots", slots,
                          "--name", name, "--dir", self.dir / f"agent-{name}", *options, **keys)


class SharedPoolTest(TunerTest):
    """The tests of the class share a service and an agent, so that programs which take long to import are forked from those
    of the first test. Each has a study of its own, by the name self.name."""

    SLOTS = 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pool = TunerTest()
        cls.pool.setUp()
        cls.addClassCleanup(cls.pool.doCleanups)
        cls.addClassCleanup(cls.pool.tearDown)
        cls.pool.serve(cls.pool.dir / "pool.db", options=("--lease", LEASE_S))
        cls.node = cls.pool.agent(cls.SLOTS)

    def setUp(self):
        super().setUp()
        self.name, self.grpc, self.http = self._testMethodName, self.pool.grpc, self.pool.http
        self.studies = set()

    def tearDown(self):
        # What a test that has failed has left running would keep the others from the slots.
        for study in self.studies:
            subprocess.run(tuner_command("stop", study, "--service", self.grpc), capture_output=True)
        wait_for(lambda: self.run_tuner("pool", "--service", self.grpc).stdout.startswith(f"0 of {self.SLOTS} slots"),
                 "the test's trials to leave the pool")
        super().tearDown()
        if self._has_failed():
            self._keep_logs(self.pool.dir)
        for process in self.pool.processes:
            self._keep_last_lines(process)

    def study(self, command, **keys):
        self.studies.add(keys.get("name", self.name))
        return super().study(command, **{"name": self.name} | keys)

    def export(self, *where, study=None):
        return super().export(*(where or ("--service", self.grpc)), study=study or self.name)

    def await_two(self):
        """Has the study's trial train on one slot, and then on two."""
        self.grow_to_two("--service", self.grpc, study=self.name)

    def folder(self):
        """Of the study's trials."""
        return self.pool.dir / "agent-node" / self.name

    def logs(self):
        return "\n".join(path.read_text() for path in sorted(self.folder().rglob("replica-*.log")))


class RanksTest:
    """Beside TunerTest: ranks of trials write down what they see, in a folder, as TRIAL-RANK-NAME."""

    RANKS = 2

    def setUp(self):
        super().setUp()
        self.notes = self.dir / "notes"
        self.notes.mkdir()

    def note(self, trial, rank, name):
        """The lines of such a file; none where it is not there."""
        path = self.notes / f"{trial}-{rank}-{name}"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def pids(self, trial):
        return [int(pid) for rank in range(self.RANKS) for pid in self.note(trial, rank, "pid")]

    def expect_nothing_left(self, trial):
        wait_for(lambda: not any(map(is_alive, self.pids(trial))), f"the processes of trial {trial} to be gone")


class EngineTest(TunerTest):
    """Of a service whose engine starts the nodes."""

    def submit(self, steps, trials, pause=0.2, also=":"):
        script = self.resumable_trial(steps, pause, also)
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


def is_alive(pid):
    """Whether it runs; one that has ended and is not waited for does not."""
    try:
        return pathlib.Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def parent_of(pid):
    return int(pathlib.Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[1])


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


def two_replicas_of(root_pid, program):
    """The same, once there are two."""
    return wait_for(lambda: len(pids := replicas_of(root_pid, program)) == 2 and pids, "two replicas")


def running(program):
    """Pids of all processes with the word `program` on their command line."""
    return sorted(without_forks({pid: parent for pid, parent, words in processes() if program in words}))


def _below(root_pid, program):
    found = {}
    children = {}
    for pid, parent, words in processes():
        children.setdefault(parent, []).append((pid, "\0".join(words)))
    todo = [root_pid]
    while todo:
        parent = todo.pop()
        for pid, line in children.get(parent, []):
            todo.append(pid)
            if program in line:
                found[pid] = parent
    return sorted(without_forks(found))


def without_forks(parents):
    """Of pids, each with its parent, those whose parent is none of them: what a program has forked has its command line
    too, until it runs its own, and is gone at any moment."""
    return [pid for pid, parent in parents.items() if parent not in parents]


def kill(pid, sig=signal.SIGKILL):
    try:
        os.kill(pid, sig)
        return True
    except ProcessLookupError:
        return False
