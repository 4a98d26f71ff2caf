"""A control group with little memory, of version 1 or 2, for a test's processes."""
import os
import pathlib

VERSION_1 = pathlib.Path("/sys/fs/cgroup/memory")
VERSION_2 = pathlib.Path("/sys/fs/cgroup")


def make(name, megabytes):
    """Its folder. OSError: this machine lets nobody make one."""
    if (VERSION_1 / "memory.limit_in_bytes").exists():
        group, limit = VERSION_1 / name, "memory.limit_in_bytes"
    else:
        if "memory" not in (VERSION_2 / "cgroup.subtree_control").read_text().split():
            (VERSION_2 / "cgroup.subtree_control").write_text("+memory")
        group, limit = VERSION_2 / name, "memory.max"
    group.mkdir()
    try:
        (group / limit).write_text(str(megabytes << 20))
    except OSError:
        group.rmdir()
        raise
    return group


def enter(group):
    """What to put before a command, so that it runs in the group."""
    return ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]


def probe():
    """What is in the way, or None."""
    try:
        make(f"espalier-probe-{os.getpid()}", 100).rmdir()
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return None
