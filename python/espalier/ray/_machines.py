"""Machines of the command engine, on Ray: named actors, which are found again by their names."""
import dataclasses
import sys
import threading
import time

import ray

from espalier._errors import first_line
from espalier.ray._node import Node

_FILES = ("--token-file", "--tls-ca")  # arguments of an agent that name a file of the service's machine
_ANSWER_S = 0.2  # for actors that have just come up to say so
_STOP_S = 10  # for a live actor to take the word that its agent is to end; on a loaded machine it takes its time
_AGAIN_S = 0.2
_WAITS_S = 3  # after which it is found out why an actor does not start
_CHUNK = 8 << 20
_PACK_S = 60  # for a node to pack what there is, and for each chunk of it


@dataclasses.dataclass(frozen=True)
class Shape:
    """What each node asks Ray for."""
    cpus: float = 1
    gpus: float = 0
    resources: tuple = ()  # (name, amount) of others

    def demand(self):
        return {name: amount for name, amount in (("CPU", self.cpus), ("GPU", self.gpus), *self.resources) if amount}

    def __str__(self):
        return ", ".join(f"{amount:g} {name}" for name, amount in self.demand().items()) or "nothing"


@dataclasses.dataclass
class _Actor:
    handle: object
    since: float
    host_ref: object
    host: str = ""
    start_ref: object = None


class Machines:
    """Each is an actor of `shape`. They outlive this process where they are `lasting`; else they end with it, and what
    they have written on their machines goes too. From any thread."""

    def __init__(self, shape, root, lasting, shipped=None, shared_dir=None):
        self._shape = shape
        self._shared = ["--shared-dir", shared_dir] if shared_dir else []  # where all agents have their checkpoints
        self._root = root
        self._lasting = lasting
        self.shipped = shipped
        self._actors = {}  # by key
        self._refused = None
        self._lock = threading.Lock()

    def request(self, key, node, command):
        with self._lock:
            refused, self._refused = self._refused, None
        if refused is not None:  # told once; the next request tries again
            raise RuntimeError(refused)
        arguments = [*command[1:], *self._shared]
        files = {}
        for index, word in enumerate(arguments[1:], 1):
            if arguments[index - 1] in _FILES:
                with open(word) as file:
                    files[index] = file.read()
        try:
            handle = ray.remote(Node).options(
                name=key, lifetime="detached" if self._lasting else None, num_cpus=self._shape.cpus,
                num_gpus=self._shape.gpus, resources=dict(self._shape.resources), scheduling_strategy="SPREAD",
                max_restarts=0, max_task_retries=0).remote(self._root, not self._lasting, self.shipped)
        except ValueError as error:
            if key in ray.util.list_named_actors():
                return  # asked for again: it is there
            raise RuntimeError(first_line(error)) from error
        # Not as an argument of the actor's, which Ray keeps.
        start_ref = handle.start.remote(node, arguments, files)
        with self._lock:
            self._actors[key] = _Actor(handle, time.monotonic(), handle.host.remote(), start_ref=start_ref)

    def release(self, key, now):
        """`now`: without waiting for the agent."""
        actor = self._find(key)
        if actor is None:
            return
        if now or not actor.host and not ray.wait([actor.host_ref], timeout=0)[0]:
            ray.kill(actor.handle)
        else:
            threading.Thread(target=_stop, args=(actor.handle,), daemon=True).start()

    def list(self, prefix):
        names = {name for name in ray.util.list_named_actors() if name.startswith(prefix)}
        with self._lock:
            gone = [self._actors.pop(key) for key in [*self._actors] if key.startswith(prefix) and key not in names]
        for actor in gone:  # without the lock, since Ray is asked
            self._note_refusal(actor)
        actors = {name: actor for name in sorted(names) if (actor := self._find(name)) is not None}
        asked = {actor.host_ref: actor for actor in actors.values() if not actor.host}
        for ref in ray.wait(list(asked), num_returns=len(asked), timeout=_ANSWER_S)[0] if asked else ():
            try:
                asked[ref].host = ray.get(ref)
            except ray.exceptions.RayError:
                pass  # it ends, and the next list has it no more
        return [self._machine(key, actor) for key, actor in actors.items()]

    def known(self):
        """The keys of those that were there last, without a word to Ray."""
        with self._lock:
            return sorted(self._actors)

    def pack(self, study):
        """Chunks of a tar file of what the study's trials have written, for each node that runs."""
        with self._lock:
            actors = {key: actor for key, actor in self._actors.items() if actor.host}
        for key, actor in actors.items():
            try:
                size = ray.get(actor.handle.pack.remote(study), timeout=_PACK_S)
                yield [ray.get(actor.handle.read.remote(at, _CHUNK), timeout=_PACK_S) for at in range(0, size, _CHUNK)]
            except (ray.exceptions.GetTimeoutError, ray.exceptions.ActorUnavailableError):
                print(f"espalier.ray: node {key} does not answer: what trials have written there is not among the results",
                      file=sys.stderr, flush=True)
            except ray.exceptions.RayActorError:
                continue  # its files are gone with it

    def _find(self, key):
        """The actor of that name, also of an earlier process; None: there is none."""
        with self._lock:
            if key in self._actors:
                return self._actors[key]
        try:
            handle = ray.get_actor(key)
        except ValueError:
            return None
        with self._lock:
            return self._actors.setdefault(key, _Actor(handle, time.monotonic(), handle.host.remote()))

    def _machine(self, key, actor):
        self._note_refusal(actor)
        if actor.host:
            return {"key": key, "id": key, "state": "running", "host": actor.host}
        waits = time.monotonic() - actor.since > _WAITS_S
        return {"key": key, "id": key, "state": "pending", "reason": self._why_it_waits() if waits else ""}

    def _why_it_waits(self):
        fits = any(all(node["Resources"].get(name, 0) >= amount for name, amount in self._shape.demand().items())
                   for node in ray.nodes() if node["Alive"])
        return f"Ray has no node with {self._shape} free" if fits else f"Ray has no node with {self._shape}"

    def _note_refusal(self, actor):
        """Where an actor could not start its agent, the next request tells why."""
        if actor.start_ref is None or not ray.wait([actor.start_ref], timeout=0)[0]:
            return
        ref, actor.start_ref = actor.start_ref, None
        try:
            ray.get(ref)
        except ray.exceptions.RayTaskError as error:
            self._refused = f"a node could not start its agent: {first_line(error.cause)}"
        except ray.exceptions.RuntimeEnvSetupError as error:
            self._refused = f"runtime_env: {first_line(error)}"
        except ray.exceptions.RayError:
            pass  # the machine, which the agent's lease is for


def _stop(handle):
    """An actor that does not take the word is on a machine that is gone, which Ray notices much later. A call that fails
    because the actor could not be reached for a moment has told it nothing: it is made again."""
    end = time.monotonic() + _STOP_S
    while (left := end - time.monotonic()) > 0:
        taken = ray.wait([handle.stop.remote()], timeout=left)[0]
        if not taken:
            break
        try:
            ray.get(taken[0])
            return
        except ray.exceptions.ActorUnavailableError:
            time.sleep(_AGAIN_S)
        except ray.exceptions.RayError:  # it has ended
            return
    ray.kill(handle)
