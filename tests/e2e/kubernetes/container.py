"""Runs a program as a container does: with a root of its own, in which volumes are mounted and whatever else is the
machine's, and as the first process of its process namespace, with which all others of it end.

    container.py SPEC.json    {"command": [...], "environment": {...}, "folder": "/", "root": folder,
                               "mounts": {path: folder or file}, "user": number or null, "group": of files}

Ends as the program does; SIGTERM is handed on to it. Ends with who has started it, as what runs on a machine does.
"""
import ctypes
import json
import os
import pathlib
import signal
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS, NEW_PIDS = 0x00020000, 0x20000000
BIND, RECURSIVE, PRIVATE = 4096, 16384, 1 << 18
DIE_WITH_PARENT = 1  # of prctl
NOT_FOUND = 127


def checked(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind=None, flags=0):
    words = [None if word is None else str(word).encode() for word in (source, target, kind)]
    checked(LIBC.mount(*words, flags, None), f"mount {source} on {target}")


def bind(source, target):
    """Shows a folder, file or link of the machine at target, in a folder that exists."""
    if source.is_symlink():
        target.symlink_to(os.readlink(source))
    elif source.is_dir():
        target.mkdir(exist_ok=True)
        mount(source, target, flags=BIND | RECURSIVE)
    else:
        target.touch()
        mount(source, target, flags=BIND)


def place_for(path, mounts):
    """Whether the path leads to one of the mounts, or is one."""
    return any(mounted == path or path in mounted.parents for mounted in mounts)


def fill(source, target, mounts):
    """target: a folder with all that is in source, except where mounts are to be."""
    for entry in sorted(source.iterdir()):
        there = target / entry.name
        if entry == pathlib.Path("/proc"):
            there.mkdir()
            mount("proc", there, "proc")
        elif place_for(entry, mounts) and entry.is_dir() and not entry.is_symlink():
            there.mkdir()
            if entry not in mounts:
                fill(entry, there, mounts)
        else:
            bind(entry, there)


def build_root(root, volumes):
    """A root on a file system in memory, and the volumes in it."""
    mount("root", root, "tmpfs")
    mounts = {pathlib.Path(os.path.realpath(path)): pathlib.Path(folder) for path, folder in volumes.items()}
    fill(pathlib.Path("/"), root, set(mounts))
    for path, folder in sorted(mounts.items()):
        target = root / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.mkdir(exist_ok=True) if folder.is_dir() else target.touch()
        mount(folder, target, flags=BIND | RECURSIVE)
    os.chroot(root)


def become(user, group):
    """In a user namespace there may be nobody else: then it stays who it is."""
    try:
        os.setgroups([group])
        os.setgid(user)
        os.setuid(user)
    except OSError:
        pass


def be_first_process(spec):
    mount(None, "/", flags=PRIVATE | RECURSIVE)
    build_root(pathlib.Path(spec["root"]), spec["mounts"])
    os.chdir(spec["folder"])
    if spec["user"] is not None:
        become(spec["user"], spec["group"])
    LIBC.prctl(DIE_WITH_PARENT, signal.SIGKILL)  # after that, which would forget it
    command, environment = spec["command"], spec["environment"]
    try:
        os.execvpe(command[0], command, environment)
    except OSError as failure:
        sys.exit(f"{command[0]}: {failure.strerror}")


def main():
    spec = json.loads(pathlib.Path(sys.argv[1]).read_text())
    LIBC.prctl(DIE_WITH_PARENT, signal.SIGKILL)
    checked(LIBC.unshare(NEW_MOUNTS | NEW_PIDS), "unshare")
    child = os.fork()
    if child == 0:
        be_first_process(spec)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
