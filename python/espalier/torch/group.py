"""Where this replica is in its group."""
import contextlib
import fcntl
import hashlib
import os
import pathlib
import tempfile
from collections.abc import Iterator

from espalier._runtime import runtime
from espalier._the_trial import the_trial
from espalier.errors import UsageError


def rank() -> int:
    """This replica's rank, which may change where the group does. Before the first epoch: 0."""
    return runtime().position.rank


def replicas() -> int:
    """How many replicas there are now. Before the first epoch: 1."""
    return runtime().position.replicas


def init_process_group(backend: str | None = None, init_method: str | None = None, world_size: int | None = None,
                       rank: int | None = None) -> None:
    """AdaptDL's call. There is nothing to set up: a replica joins its group in the first epoch. So that programs
    which ask torch.distributed for rank, size and barriers before that go on, this makes a default process group
    of this process alone where there is none."""
    trial = the_trial()
    if not trial.elastic and world_size not in (None, 1):
        raise UsageError(f"init_process_group: world_size is {world_size}, and no agent has started this process: "
                         "replicas that train together are started by `tuner run`")
    import torch.distributed as dist
    if dist.is_available() and not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


_locks = set()  # files that this process has locked


def _leave_locks_to_parent():
    """In a process that was forked, which would hold them for as long as it lives."""
    while _locks:
        _locks.pop().close()


os.register_at_fork(after_in_child=_leave_locks_to_parent)


@contextlib.contextmanager
def local_first(name: str = "espalier") -> Iterator[None]:
    """Lets one process of this machine in at a time: for what each would download, and finds done after the
    first. Processes that are forked within belong to the one that is in, and hold nobody up when it has left."""
    digest = hashlib.sha256(f"{os.getuid()} {name}".encode()).hexdigest()[:16]
    with open(pathlib.Path(tempfile.gettempdir()) / f"espalier-{digest}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _locks.add(lock)
        try:
            yield
        finally:
            _locks.discard(lock)
