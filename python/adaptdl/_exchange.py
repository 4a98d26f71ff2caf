"""Bytes of each process to all of a job, by sockets through rank 0."""
import collections
import concurrent.futures
import socket
import struct
import threading
import time

from espalier import env
from espalier.errors import TrialError, UsageError

from adaptdl import _variables

_CONNECT_S = 120
_RETRY_S = 0.02
_MOST_BYTES = 1 << 30  # of one value
_NUMBER = struct.Struct("!Q")
_the = None  # of this process


def of_job(master_addr=None, master_port=None, replica_rank=None, num_replicas=None):
    """The one of this process, which is made at the first call. What is not given is what the variables say."""
    global _the
    if _the is None:
        _the = Exchange(master_addr or env.master_addr(),
                        env.master_port() if master_port is None else master_port,
                        _variables.rank() if replica_rank is None else replica_rank,
                        _variables.replicas() if num_replicas is None else num_replicas)
    return _the


def close():
    """Closes that of this process, if there is one. On all processes."""
    global _the
    if _the is not None:
        _the.close()
        _the = None


def _send(to, parts):
    to.sendall(b"".join(piece for part in parts for piece in (_NUMBER.pack(len(part)), part)))


def _receive(source):
    size, = _NUMBER.unpack(_exactly(source, _NUMBER.size))
    if size > _MOST_BYTES:
        raise ConnectionError(f"a value of {size} bytes: at most {_MOST_BYTES}")
    return _exactly(source, size)


def _exactly(source, size):
    got = source.read(size)
    if len(got) != size:
        raise ConnectionError("the connection has ended")
    return got


class Exchange:
    """Between the processes of a job; made on all of them. `gather` sends at once, and a thread of each process
    takes what comes, so that none waits for another to ask for its result."""

    def __init__(self, address, port, rank, replicas):
        if not 0 <= rank < replicas:
            raise UsageError(f"adaptdl.collective: rank {rank} of {replicas} replicas")
        self._rank, self._socket = rank, None
        self._due = collections.deque()
        self._lost = None
        self._lock = threading.Lock()
        if replicas == 1:
            return
        if port == 0:
            raise UsageError("adaptdl.collective: no port to meet at: set ADAPTDL_MASTER_PORT")
        # An unset address is 0.0.0.0, where nothing can be reached but this machine.
        address = "127.0.0.1" if address in ("", "0.0.0.0") else address
        if rank == 0:
            listener = socket.create_server((address, port), backlog=replicas)
            threading.Thread(target=_serve, args=(listener, replicas), daemon=True).start()
        self._socket = _connected(address, port)
        self._source = self._socket.makefile("rb")
        self._socket.sendall(_NUMBER.pack(rank))
        self._replicas = replicas
        threading.Thread(target=self._take, daemon=True).start()
        self.gather(b"").result()  # all are there

    def gather(self, part):
        """A future of the parts of all, by rank."""
        future = concurrent.futures.Future()
        if self._socket is None:
            future.set_result([part])
            return future
        with self._lock:
            if self._lost:
                raise TrialError(self._lost)
            self._due.append(future)
        try:
            _send(self._socket, [part])
        except OSError as error:
            self._fail(error)
        return future

    def close(self):
        """On all processes: none is waited for after it."""
        if self._socket is None:
            return
        self.gather(b"").result()
        try:
            self._socket.shutdown(socket.SHUT_RDWR)  # which ends the thread
        except OSError:
            pass  # it has ended: another process closed first

    def _take(self):
        try:
            while True:
                parts = [_receive(self._source) for _ in range(self._replicas)]
                self._due.popleft().set_result(parts)
                del parts  # not kept until the next ones come
        except (OSError, ValueError) as error:
            self._fail(error)
        finally:
            self._source.close()
            self._socket.close()

    def _fail(self, error):
        with self._lock:
            self._lost = f"adaptdl.collective: a process of the job is gone ({error})"
            due = list(self._due)
            self._due.clear()
        for future in due:
            future.set_exception(TrialError(self._lost))


def _connected(address, port):
    end = time.monotonic() + _CONNECT_S
    while True:
        try:
            connected = socket.create_connection((address, port))
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connected
        except OSError as error:
            if time.monotonic() > end:
                raise TrialError(f"adaptdl.collective: rank 0 is not at {address}:{port} ({error})") from error
            time.sleep(_RETRY_S)


def _serve(listener, replicas):
    """Rank 0's thread: takes one part of each process, and gives all of them to each. It ends with the first
    process that does, and all others see that."""
    sockets, sources = {}, {}
    try:
        with listener:
            while len(sockets) < replicas:
                one = listener.accept()[0]
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                source = one.makefile("rb")
                rank, = _NUMBER.unpack(_exactly(source, _NUMBER.size))
                if rank >= replicas or rank in sockets:
                    one.close()
                    continue
                sockets[rank], sources[rank] = one, source
        while True:
            parts = [_receive(sources[rank]) for rank in range(replicas)]
            for rank in reversed(range(replicas)):  # this process's last: it may end with the result
                _send(sockets[rank], parts)
    except OSError:
        pass
    finally:
        for source in sources.values():
            source.close()
        for one in sockets.values():
            one.close()
