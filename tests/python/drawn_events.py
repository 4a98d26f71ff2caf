"""Runs a drawn program as a trial of a pool, resizes it and kills replicas where its events say so, and keeps what each replica
has said: which samples it had, in which group."""
import contextlib
import dataclasses
import pickle
import sys
import threading
import time
from multiprocessing.connection import Listener

from espalier.errors import ServiceError

PATIENCE_S = 120  # the first ones wait for what replicas import
MOST_EPOCHS = 200
# That a batch is held while the group is to change, so that few batches pass until it does: a process may take its time to
# start, and a model diverge meanwhile. The n-th one so many times longer.
PENDING_S = 0.01
LONGER = 0.05
MOST_PENDING_S = 2  # the same of the first one, until the service has told of another group


@dataclasses.dataclass
class Trained:
    """What has come of a trial."""
    batches: list = dataclasses.field(default_factory=list)  # what replicas said before each, in this order
    evaluated: dict = dataclasses.field(default_factory=dict)  # by epoch: the sum, and who had rank 0
    results: list = dataclasses.field(default_factory=list)
    sizes: list = dataclasses.field(default_factory=list)  # of the groups, one after the other
    failure: str = ""


class Events:
    """Answers the replicas of one trial."""

    def __init__(self, program, pin, generation, least_epochs=3):
        """`pin(n)` has the trial resized, `generation()` is the latest that the service has told of."""
        self.trained = Trained()
        self._pin, self._generation = pin, generation
        self._left = list(program.events)
        self._begun = None  # (generation when the event began) once it has
        self._pending = 0  # batches of rank 0 since then
        self._least_epochs = least_epochs
        self._lock = threading.Lock()
        self.closed = threading.Event()

    def answer(self, said):
        self._hold(said)
        with self._lock:
            if said["what"] == "batch":
                self.trained.batches.append(said)
                if said["rank"] == 0 and self.trained.sizes[-1:] != [said["replicas"]]:
                    self.trained.sizes.append(said["replicas"])
                return self._event(said)
            if said["what"] == "draws":
                next(each for each in reversed(self.trained.batches) if each["pid"] == said["pid"]).setdefault(
                    "draws", []).append(said["draws"])
            if said["what"] == "ends" and said["epoch"] > MOST_EPOCHS:
                self.trained.failure = f"{self._left} has not come within {MOST_EPOCHS} epochs, of {self.trained.sizes} replicas"
                return True
            if said["what"] == "ends":
                return not self._left and said["epoch"] + 1 >= self._least_epochs
            if said["what"] == "evaluated" and said["rank"] == 0:
                self.trained.evaluated[said["epoch"]] = said["loss"]
            if said["what"] == "result":
                self.trained.results.append(said)
            return None

    def _event(self, said):
        """Of the batch that a replica is about to begin: before which phase of it the replica dies, or None."""
        if not self._left:
            return None
        kind, what, *phase = self._left[0].split(":")
        if kind != "resizes" and self._begun is None and self._is_victim(kind, int(what), said):
            self._begun = said["generation"], said["pid"]
            said["dies"] = phase[0]
            return phase[0]
        return None

    def _is_victim(self, kind, which, said):
        if kind == "restarts":
            return said["replicas"] == 1 and said["epoch"] > 0
        return said["replicas"] > 1 and said["rank"] == which % said["replicas"]

    def _pass_what_is_done(self, said):
        if not self._left or said["what"] != "batch" or said["rank"] != 0:
            return
        kind, what, *_ = self._left[0].split(":")
        if kind == "resizes":
            done = said["replicas"] == int(what)
        else:
            done = self._begun is not None and said["pid"] != self._begun[1] and said["generation"] > self._begun[0]
        if done:
            self._left.pop(0)
            self._begun = None

    def _hold(self, said):
        """Where the group is to change: has that begun by rank 0, and all wait, so that none looks slower than others."""
        with self._lock:
            self._pass_what_is_done(said)
            kind, what, *_ = (self._left or [":"])[0].split(":")
            if said["what"] != "batch" or kind != "resizes":
                return
            begins = self._begun is None and said["rank"] == 0
            if begins:
                self._begun = said["generation"], said["pid"]
                self._pending = 0
            self._pending += said["rank"] == 0
            longer = 1 + LONGER * self._pending
        self.closed.wait(longer * PENDING_S)
        if not begins:
            return
        self._pin(int(what))
        end = time.monotonic() + MOST_PENDING_S
        while time.monotonic() < end and not self.closed.wait(PENDING_S) and self._generation() <= said["generation"]:
            pass


class Talk:
    """Listens for the replicas of one trial."""

    def __init__(self, path, events):
        self._listener = Listener(str(path), "AF_UNIX", backlog=16)
        self._events = events
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            while True:
                said = pickle.loads(connection.recv_bytes())
                connection.send_bytes(pickle.dumps(self._events.answer(said)))
        except (EOFError, OSError):
            connection.close()

    def close(self):
        self._events.closed.set()
        self._listener.close()


def _losses(program):
    return [event for event in program.events if not event.startswith("resizes")]


def train(program, name, folder, script, client):
    """As a trial of the pool of that client. Returns a Trained."""
    folder.mkdir()
    (folder / "program.json").write_text(program.json())

    def generation():
        return client.details(name, values=False)["trials"][0]["generation"]

    events = Events(program, lambda replicas: client.pin(name, 0, replicas), generation)
    talk = Talk(folder / "s", events)
    try:
        client.submit({"name": name, "command": [sys.executable, str(script), str(folder / "program.json"), str(folder / "s")],
                       "metric": {"name": "loss", "direction": "minimize"}, "trials": 1, "sampler": "random", "seed": 1,
                       "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}, "slots": {"min": 1, "max": 4},
                       "max_restarts": 2})
        end = time.monotonic() + PATIENCE_S
        while (trial := next(iter(client.details(name)["trials"]), None)) is None or trial["state"] not in (
                "TRIAL_COMPLETE", "TRIAL_FAIL"):
            if time.monotonic() > end:
                events.trained.failure = f"has not ended, sizes {events.trained.sizes}, to come: {events._left}"
                client.cancel(name, 0)
                return events.trained
            if trial is not None and trial["generation"] == 0:
                with contextlib.suppress(ServiceError):  # it may have ended meanwhile
                    client.pin(name, 0, 1)
            events.closed.wait(0.05)
        if trial["state"] == "TRIAL_FAIL":
            events.trained.failure = f"{trial['reason']}\n{trial['last_output']}"
        elif trial["restarts"] + sum(resize["after_loss"] for resize in trial["resizes"]) > len(_losses(program)):
            events.trained.failure = f"replicas were lost that nobody has killed:\n{client.logs(name, 0)}"
        elif len(events.trained.results) != len({said["rank"] for said in events.trained.results}):
            events.trained.failure = "two replicas of one rank"
    finally:
        talk.close()
    return events.trained
