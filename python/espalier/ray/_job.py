"""The actor of `espalier-on-ray`: the pool of one plain elastic job, on a machine of the cluster."""
import pathlib
import re
import shutil
import tempfile
import threading
import time
import uuid

import ray

from espalier._rows import has_ended, plain_state
from espalier.errors import ServiceError
from espalier.ray import _results
from espalier.ray._machines import Machines
from espalier.ray._node import default_root, work_in
from espalier.ray._pool import Terms, run_study

_LOOK_S = 0.5
_TAIL = 400  # characters of what was shown last, by which it is found again
_HEADING = re.compile(r"^(==> node \S+ <==)\n", re.MULTILINE)
_MORE = re.compile(r"\n\(more is .*\)\n\Z")


class Job:
    """An actor of several threads: one runs the job, the others tell of it. It and its nodes end with the program that
    started it."""

    def __init__(self):
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="espalier-on-ray-"))
        self._told = ""
        self._stopping = threading.Event()
        self._archive = None

    def run(self, spec, shape, max_nodes, slots, shared_dir):
        """Until the job has ended, or is stopped. Returns its state, and why where it has failed."""
        root = default_root(uuid.uuid4().hex[:12])
        shipped = ray.get_runtime_context().runtime_env["working_dir"]
        machines = Machines(shape, root, lasting=False, shipped=shipped, shared_dir=shared_dir)
        terms = Terms(ray.util.get_node_ip_address(), max_nodes, slots, shape.gpus > 0)
        try:
            details = run_study({**spec, "directory": work_in(root)}, machines, self._folder, terms,
                                lambda service: self._follow(service, spec["name"]))
            self._archive = tempfile.TemporaryFile()
            if (self._folder / "results").is_dir():
                _results.pack(self._folder / "results", self._archive)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
        return _outcome(details)

    def told(self, since):
        """What was printed after so many characters."""
        return self._told[since:]

    def stop(self):
        self._stopping.set()

    def read(self, offset, size):
        """Of a tar file of what the job has written, once it has ended."""
        self._archive.seek(offset)
        return self._archive.read(size)

    def _follow(self, service, name):
        log, slots, warnings, stopped = Log(), None, [], False
        while True:
            [trial] = service.trials(name, values=False)
            self._told += log.news(_log_of(service, name))
            if trial["slots"] != slots and not has_ended(trial):
                slots = trial["slots"]
                self._told += f"espalier-on-ray: trains on {slots} slots\n" if slots else "espalier-on-ray: waits\n"
            before, warnings = warnings, service.pool().get("warnings", [])
            self._told += "".join(f"espalier-on-ray: {line}\n" for line in warnings if line not in before)
            if has_ended(trial) or stopped and not trial["slots"]:
                return
            if self._stopping.wait(_LOOK_S) and not stopped:
                service.stop(name)
                stopped = True
            elif stopped:
                time.sleep(_LOOK_S)


def _log_of(service, name):
    try:
        return service.logs(name, 0)
    except ServiceError:  # it has not started, or its machine is away
        return ""


class Log:
    """What is new in a log of which each look shows the end: a part for each node, under a heading once there are
    several."""

    def __init__(self):
        self._shown = {}  # by heading; "": there was none yet
        self._heading = ""  # under which was told last

    def news(self, text):
        told = []
        for heading, part in _parts(_MORE.sub("", text)):
            if heading not in self._shown and part.startswith(self._shown.get("", "\0")):
                self._shown[heading] = self._shown.pop("")
            shown = self._shown.get(heading, "")
            if part.startswith(shown):
                new = part[len(shown):]
            else:  # it has grown beyond what is shown of it
                _, tail, after = part.rpartition(shown[-_TAIL:])
                new = after if tail else part
            self._shown[heading] = part
            told += [f"{heading}\n" if heading and heading != self._heading else "", new] if new else []
            self._heading = heading if new else self._heading
        return "".join(told)


def _parts(text):
    """(heading, text) of each."""
    pieces = _HEADING.split(text)
    return [(heading, part) for heading, part in zip(["", *pieces[1::2]], pieces[::2], strict=True) if heading or part]


def _outcome(details):
    [trial] = details["trials"]
    return plain_state(trial["state"]), trial["reason"]
