"""A `tuner serve` whose machines are Ray's, below this process, and a study in one of its own."""
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

from espalier import _child, _run, client
from espalier.errors import EspalierError
from espalier.ray import _results
from espalier.ray._machine_server import ANSWER_S, MachineServer

_LEASE_S = 5  # of agents: Ray itself takes 14 s to notice a dead node, and longer for one that hangs
_SETTLE_S = 5
_START_S = 5
_LIMIT_S = ANSWER_S + 5  # for the program that asks the machine server
_QUEUE_S = 86400  # an actor may wait for a place for so long
_OPEN_S = 60
_LOOK_S = 0.05
_END_S = 90  # for a service that was told to end: its nodes have 60 s, and each question about them has its own
_DATABASE = "pool.db"


@dataclasses.dataclass(frozen=True)
class Terms:
    """What a pool's `tuner serve` is told."""
    host: str  # that it listens on
    max_nodes: int
    node_slots: int
    gpus: bool = False  # the slots are
    grpc_port: int = 0
    http_port: int = 0
    options: tuple = ()  # further ones, which stand over ours
    keeps_nodes: bool = False  # to the end, since what is written on them would go with them


class Pool:
    """In `folder`. Where this process dies its service does so at once: nodes that last are not given back then, and the
    next pool in the same folder and on the same ports takes them over."""

    def __init__(self, machines, folder, terms, output=None):
        self.folder = pathlib.Path(folder).absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._output = output
        self._machines = machines
        self._machine_server = MachineServer(machines)
        self._last_word = threading.Timer(_END_S, self._end_at_once)
        self._last_word.daemon = True
        # Of this thread's, which lives for as long as the pool.
        child = [sys.executable, "-I", _child.__file__, int(signal.SIGKILL), os.getpid()]
        self._service = subprocess.Popen(
            [str(word) for word in (*child, _run.tuner_program(), "serve", *self._arguments(terms))],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output and subprocess.STDOUT, start_new_session=True)

    def _arguments(self, terms):
        words = ["--db", self.folder / _DATABASE, "--node-dir", self.folder / "nodes", "--engine", "command",
                 "--max-nodes", terms.max_nodes, "--node-slots", terms.node_slots]
        if terms.keeps_nodes and "--min-nodes" not in (str(word).split("=")[0] for word in terms.options):
            words += ["--min-nodes", terms.max_nodes]
        words += ["--node-gpus"] if terms.gpus else []
        for name, value in (*(("program", word) for word in self._machine_server.program), ("limit_s", _LIMIT_S),
                            ("settle_s", _SETTLE_S), ("start_s", _START_S), ("queue_s", _QUEUE_S)):
            words += ["--engine-option", f"{name}={value}"]
        for name, value in (("--lease", _LEASE_S), ("--grpc", f"{terms.host}:{terms.grpc_port}"),
                            ("--http", f"{terms.host}:{terms.http_port}")):
            given = any(word.split("=")[0] == name for word in map(str, terms.options))
            words += [] if given else [name, value]
        return [*words, *terms.options]

    def client(self):
        """Of the service, once it listens. For a pool with an `output`."""
        end = time.monotonic() + _OPEN_S
        while self._service.poll() is None and time.monotonic() < end:
            told = re.search(r"^HTTP (\S+)\n", self._printed(), re.MULTILINE)
            if told:
                token = self.folder / f"{_DATABASE}.credentials" / "administer.token"
                return client.Client(told[1], token_file=token) if token.exists() else client.Client.at_home(told[1])
            time.sleep(_LOOK_S)
        raise EspalierError("tuner serve did not start: " + (self._printed().strip() or "it said nothing"))

    def export(self, study, path):
        """What `tuner export` tells of the study, into a file."""
        with open(path, "w") as file:
            subprocess.run([_run.tuner_program(), "export", study, "--db", self.folder / _DATABASE], stdout=file,
                           check=True)

    def stop(self):
        """Its trials save and leave, and its nodes are given back. That takes _END_S at most."""
        if self._service.poll() is None:
            if self._last_word.ident is None:
                self._last_word.start()
            self._service.terminate()

    def wait(self):
        """Until the service has ended; returns its exit code."""
        code = self._service.wait()
        self._last_word.cancel()
        return code if code >= 0 else 1

    def _end_at_once(self):
        if self._service.poll() is None:
            left = ", ".join(self._machines.known()) or "none"
            print(f"espalier.ray: the service has not ended within {_END_S:g} s and is killed; nodes that may be left: "
                  f"{left}", file=sys.stderr, flush=True)
            self._service.kill()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()
        self.wait()
        self._machine_server.close()

    def _printed(self):
        return pathlib.Path(self._output.name).read_text()


def run_study(spec, machines, folder, terms, follow):
    """Runs the study in a pool of its own, until `follow(client)` returns; where an earlier one has begun it in the same
    folder it goes on. The folder then has the record, and in `results` what trials have written where their folder was
    shipped. Returns the study's details."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    terms = dataclasses.replace(terms, keeps_nodes=bool(machines.shipped))
    with open(pathlib.Path(folder) / "service.log", "w", opener=_for_its_owner) as output, \
            Pool(machines, folder, terms, output) as pool:
        with pool.client() as service:
            _submit(service, spec)
            follow(service)
            details = service.details(spec["name"])
            if machines.shipped:
                _results.gather(machines, spec["name"], pool.folder / "results")
    pool.export(spec["name"], pool.folder / "trials.csv")
    return details


def _for_its_owner(path, flags):
    return os.open(path, flags, 0o600)


def _submit(service, spec):
    service.submit(spec, exist_ok=True)
    name = spec["name"]
    if spec.get("sampler") == "queue" and not service.trials(name, values=False):
        service.enqueue(name, {})
    if service.study(name)["state"] == "STUDY_STOPPED":
        service.resume(name)
