"""Ports for programs that are told theirs: NNI's managers, which want the next one too, so that two neighbours are chosen
beforehand, and AdaptDL's jobs, which take the first. All else that tests and benchmarks start binds port 0 and says which
one it got, or listens where its test holds the port. A port that is looked up by binding to 0 and let go again can be taken
before the manager listens: by any connection that goes out, or by another test that looks at the same moment. So these are
outside the range of outgoing connections, and each is kept by a lock until the process that chose it ends."""
import fcntl
import os
import pathlib
import random
import socket
import tempfile

_FOLDER = pathlib.Path(tempfile.gettempdir()) / f"espalier-ports-{os.getuid()}"
_locks = {}  # port: the open file that keeps it


def _range():
    first, last = map(int, pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    return range(10000, first) or range(last + 1, 65536)


def _keep(port):
    """The lock of a port that nobody has, or None."""
    lock = open(_FOLDER / str(port), "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("", port))
    except OSError:
        lock.close()
        return None
    return lock


def two_free_ports():
    """The first of two neighbours."""
    _FOLDER.mkdir(exist_ok=True)
    usable = _range()
    for _ in range(1000):
        first = random.SystemRandom().randrange(usable.start, usable.stop - 1)
        wanted = (first, first + 1)
        if any(port in _locks for port in wanted):
            continue
        locks = [_keep(port) for port in wanted]
        if all(locks):
            _locks.update(zip(wanted, locks))
            return first
        for lock in filter(None, locks):
            lock.close()
    raise RuntimeError(f"no two free ports side by side from {usable.start} to {usable.stop - 1}")
