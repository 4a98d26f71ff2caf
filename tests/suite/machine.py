"""What this machine allows tests to do, found out by doing it. `python3 tests/suite/machine.py` tells all of it.

A capability is a function that returns what is in the way, in the system's own words, or None.
"""
import ctypes
import dataclasses
import functools
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRY_S = 60  # that a trial may take on a busy machine
SHARED_MEMORY_MB = 64
PROCESSORS = 2
PR_SET_PTRACER, PR_SET_PTRACER_ANY = 0x59616D61, ctypes.c_ulong(-1)
PTRACE_ATTACH, PTRACE_DETACH = 16, 17


@dataclasses.dataclass(frozen=True)
class Missing:
    reason: str  # in the system's words
    remedy: str  # what would allow it


def _run(*command):
    """What is in the way of the command, or None."""
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=TRY_S)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"{command[0]} took longer than {TRY_S} s"
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return None if done.returncode == 0 else (lines[-1] if lines else f"{command[0]} ended with {done.returncode}")


def unshared(*command):
    """The command in namespaces as tests/e2e/hosts.py makes them."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *user, *command]


def namespaces():
    script = ("ip link add one type veth peer name two && ip link add bridge type bridge && ip link set lo up && "
              "nft add table inet faults && mount -t tmpfs none /run && touch /run/net && unshare --net=/run/net true")
    return _run(*unshared("sh", "-c", script))


def tun():
    return namespaces() or _run(*unshared("sh", "-c", "exec 3<>/dev/net/tun && ip tuntap add dev test0 mode tun"))


def slurm():
    for program in ("slurmctld", "slurmd", "munged"):
        if shutil.which(program, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin") is None:
            return f"there is no {program}"
    with tempfile.TemporaryDirectory(prefix="espalier-slurm-") as folder:
        scripts = ROOT / "tests/e2e/slurm"
        wrong = _run(scripts / "up.sh", folder, 1, 1)
        _run(scripts / "down.sh", folder)
        return wrong


def ipv6():
    try:
        with socket.socket(socket.AF_INET6) as listener:
            listener.bind(("::1", 0))
    except OSError as error:
        return f"::1 cannot be listened on: {error.strerror}"
    return None


def ptrace():
    """The leak sanitizer stops the threads of its process from another one."""
    libc = ctypes.CDLL(None, use_errno=True)
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
        libc.pause()
        os._exit(0)
    try:
        if libc.ptrace(PTRACE_ATTACH, child, None, None) == 0:
            os.waitpid(child, 0)
            libc.ptrace(PTRACE_DETACH, child, None, None)
            return None
        return f"a process may not trace its child: {os.strerror(ctypes.get_errno())}"
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def shared_memory():
    try:
        with tempfile.TemporaryFile(dir="/dev/shm") as file:
            os.posix_fallocate(file.fileno(), 0, SHARED_MEMORY_MB << 20)
    except OSError as error:
        return f"/dev/shm has no {SHARED_MEMORY_MB} MB: {error.strerror}"
    return None


def cores():
    have = len(os.sched_getaffinity(0))
    return None if have >= PROCESSORS else f"there is {have} processor"


def browser():
    absent = [program for program in ("chromium", "chromedriver") if shutil.which(program) is None]
    return f"there is no {absent[0]}" if absent else None


def git_history():
    return _run("git", "-C", ROOT, "rev-parse", "--verify", "HEAD~1")


CAPABILITIES = {
    "namespaces": (namespaces, "root, or a container with --cap-add=SYS_ADMIN,NET_ADMIN; in a chroot its folder must be a mount of "
                               "its own: mount --bind DIR DIR"),
    "tun": (tun, "the same as namespaces, and the device: --device=/dev/net/tun"),
    "slurm": (slurm, "scripts/setup.sh --tests installs its daemons"),
    "ipv6": (ipv6, "sysctl net.ipv6.conf.lo.disable_ipv6=0; in Docker --sysctl of the same"),
    "ptrace": (ptrace, "a container with --cap-add=SYS_PTRACE, and no debugger around the test"),
    "shared_memory": (shared_memory, "a container with --shm-size=1g"),
    "cores": (cores, f"{PROCESSORS} processors"),
    "browser": (browser, "scripts/setup.sh --tests installs it"),
    "git_history": (git_history, "a clone with its history: git fetch --unshallow"),
}


@functools.lru_cache(maxsize=None)
def _in_the_way(name):
    return CAPABILITIES[name][0]()


def missing(names=None):
    """Of the named capabilities, or all: name -> Missing, of those that are not there."""
    reasons = {name: _in_the_way(name) for name in (CAPABILITIES if names is None else names)}
    return {name: Missing(reason, CAPABILITIES[name][1]) for name, reason in reasons.items() if reason is not None}


def main():
    for name in CAPABILITIES:
        reason = _in_the_way(name)
        print(f"{name}: {'allowed' if reason is None else f'missing: {reason}; what would allow it: {CAPABILITIES[name][1]}'}")


if __name__ == "__main__":
    main()
