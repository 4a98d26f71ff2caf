"""What runs on Ray's machines: one actor for each node of the pool, which runs an agent and ends with it."""
import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading

from espalier import _child, _run
from espalier.errors import UsageError

START_S = 30  # after which an actor that was never told what to run is nobody's
_LEAVE_S = 5  # for Ray to end the actor by itself
_WORK = "work"  # folder of a root: a copy of what Ray has shipped
_SHIPPED = "shipped"  # file of a root: what that is


def default_root(pool):
    """Where a machine keeps what its nodes write, the same on all of them."""
    return str(pathlib.Path(tempfile.gettempdir()) / f"espalier-ray-{os.getuid()}-{pool}")


def work_in(root):
    """Where trials find what was shipped."""
    return str(pathlib.Path(root) / _WORK)


class Node:
    """An actor of one thread. `root` is this machine's folder for the pool, and kept where the actor ends unless it is
    `fleeting`. With `shipped`, the name of what Ray has put into the actor's working directory, the root has a copy of
    that, `work`, in which trials run."""

    def __init__(self, root, fleeting, shipped):
        self._root = pathlib.Path(root)
        self._fleeting = fleeting
        self._shipped = shipped
        self._folder = None
        self._agent = None
        self._packed = None
        self._unstarted = threading.Timer(START_S, self._leave)
        self._unstarted.daemon = True
        self._unstarted.start()

    def start(self, name, arguments, files):
        """Runs `tuner` with these arguments. Those at the indices of `files` name a file, which is written here with
        that text; --dir is a folder of this machine's."""
        self._unstarted.cancel()
        try:
            self._start(name, list(arguments), files)
        except Exception:
            threading.Timer(_LEAVE_S, self._leave).start()  # whoever asked has been told by then
            raise

    def host(self):
        """Answers once the actor runs."""
        import ray
        return ray.util.get_node_ip_address()

    def stop(self):
        """The agent is told to end, and takes its time."""
        if self._agent is None:
            threading.Thread(target=self._leave, daemon=True).start()
        elif self._agent.poll() is None:
            self._agent.terminate()

    # ---- results

    def pack(self, study):
        """A tar file of what the study's trials have written here, in their own folders and in the shipped one. Its
        size, for `read`."""
        if self._folder is None:  # it could not start
            return 0
        work = self._root / _WORK
        self._packed = tempfile.TemporaryFile()
        with tarfile.open(fileobj=self._packed, mode="w") as archive:
            if (self._folder / study).is_dir():
                archive.add(self._folder / study, study, filter=_without_tokens)
            since = (self._root / _SHIPPED).stat().st_mtime_ns if work.is_dir() else 0
            for path in sorted(work.rglob("*")):
                if path.is_file() and path.stat().st_mtime_ns > since and "__pycache__" not in path.parts:
                    archive.add(path, path.relative_to(work))
        return self._packed.tell()

    def read(self, offset, size):
        self._packed.seek(offset)
        return self._packed.read(size)

    # ---- of the machine

    def _start(self, name, arguments, files):
        _make_private(self._root)
        self._folder = self._root / name
        self._folder.mkdir(exist_ok=True)
        if self._shipped:
            self._unpack()
        for index, text in files.items():
            path = self._folder / f"{arguments[index - 1].strip('-')}.given"
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(text)
            arguments[index] = str(path)
        arguments[arguments.index("--dir") + 1] = str(self._folder)
        # It ends when this process does, in whatever way; actors of one thread start it from their main one.
        self._agent = subprocess.Popen(
            [sys.executable, "-I", _child.__file__, str(int(signal.SIGTERM)), str(os.getpid()), _run.tuner_program(),
             *arguments], stdin=subprocess.DEVNULL, env=_environment())
        threading.Thread(target=self._follow, daemon=True).start()

    def _unpack(self):
        """Once for all nodes of this machine."""
        mark, work = self._root / _SHIPPED, self._root / _WORK
        with self._locked():
            if mark.exists() and mark.read_text() == self._shipped and work.is_dir():
                return
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(os.getcwd(), work, symlinks=True)
            mark.write_text(self._shipped)

    def _follow(self):
        self._agent.wait()
        self._leave()

    def _clear(self):
        """The node's folder, and the root with its last."""
        with self._locked():
            shutil.rmtree(self._folder, ignore_errors=True)
            if not any(path.is_dir() for path in self._root.iterdir() if path.name != _WORK):
                shutil.rmtree(self._root, ignore_errors=True)

    @contextlib.contextmanager
    def _locked(self):
        """Against other nodes of this machine."""
        with open(self._root / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _leave(self):
        """Ends the actor; where Ray does not, its process."""
        import ray
        if self._fleeting and self._folder is not None:
            self._clear()
        end = threading.Timer(_LEAVE_S, os._exit, (0,))
        end.daemon = True
        end.start()
        ray.actor.exit_actor()


def _without_tokens(member):
    return None if member.name.endswith(".token") else member


def _environment():
    """The actor's, with the interpreter that it runs on first in PATH, and without the threads of a whole node, which
    each of its replicas would use."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    path = os.environ.get("PATH", os.defpath)
    return environment | {"PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{path}"}


def _make_private(folder):
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner = folder.stat().st_uid
    if owner != os.getuid():
        raise UsageError(f"folder {folder} belongs to user {owner}, not to {os.getuid()}: name another by --scratch-dir")
