"""What this machine allows tests to do, found out by doing it. `python3 tests/suite/machine.py` tells all of it.

A capability is a probe, which returns what is in the way, in the system's own words, or None, and what would allow it. A probe
raises nothing, leaves nothing behind, and takes about a second at most where the machine has nothing else to do.
"""
import ctypes
import dataclasses
import functools
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRY_S = 60  # that a probe may take on a busy machine
SHARED_MEMORY_MB = 64  # more than the batches that any test's loaders hold at once
NOBODY = 65534
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
PR_SET_PDEATHSIG = 1
INSIDE = "--inside"  # this file's argument before the name of a probe that runs in namespaces
INSTALLS = "scripts/setup.sh --tests installs it"
TELLING = re.compile("error|fatal|cannot|denied|failed|invalid|no such|not found|not permitted|not supported", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Missing:
    reason: str  # in the system's words
    remedy: str  # what would allow it


def _telling(text):
    """The line of what a program has written that says what was wrong: the first that looks like it, else the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next(filter(TELLING.search, lines), lines[-1] if lines else None)


def _run(*command, environment=None):
    """What is in the way of the command, or None."""
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, text=True, errors="replace",
                              capture_output=True, timeout=TRY_S, env=environment)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"{command[0]} took longer than {TRY_S} s"
    if done.returncode == 0:
        return None
    return _telling(done.stderr) or _telling(done.stdout) or f"{command[0]} ended with {done.returncode}"


def _absent(*programs):
    """The first of the programs that is not installed, as what is Missing."""
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin"
    for program in programs:
        if shutil.which(program, path=path) is None:
            return Missing(f"there is no {program}", INSTALLS)
    return None


def _in_child(steps):
    """What steps(), in a process of its own that it changes, fails with, or None. It ends with this process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        try:
            steps()
        except Exception as error:
            os.write(write, (getattr(error, "strerror", None) or str(error)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, errors="replace") as said:
        why = said.read()
    os.waitpid(child, 0)
    return why or None


# In namespaces, as tests/e2e/hosts.py makes them: this file goes on in there.

def _inside(name):
    environment = {key: value for key, value in os.environ.items() if key != "ESPALIER_TEST_HOSTS"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return _run(sys.executable, pathlib.Path(__file__).resolve(), INSIDE, name, environment=environment)


def _make_network(hosts):
    """All that networks of tests are made of: a bridge, cables, addresses of both kinds, shaping and rules of nftables."""
    with tempfile.TemporaryDirectory() as folder:
        network = hosts.Network(1, pathlib.Path(folder), rate_mbit=40)
        network.hosts[0].lose(1)


def _make_tun(hosts):
    """As tests/benchmarks/programs/delay_relay.cc does."""
    hosts.sh("ip", "tuntap", "add", "dev", "probe", "mode", "tun")


INSIDE_PROBES = {"namespaces": _make_network, "tun": _make_tun}


def _go_on_inside(name):
    sys.path.insert(0, str(ROOT / "tests/e2e"))
    os.environ.setdefault("ESPALIER_BIN", os.devnull)  # the tests' programs, of which none is started
    import hosts
    hosts.run_inside(__file__)
    try:
        INSIDE_PROBES[name](hosts)
    except (AssertionError, OSError) as error:
        sys.exit(_telling(str(error).partition("\n")[2]) or str(error))


def namespaces():
    return _absent("ip", "nft", "tc") or _inside("namespaces")


def tun():
    lack = namespaces()
    if lack is not None:
        return lack
    return _inside("tun")


def slurm():
    lack = _absent("slurmctld", "slurmd", "munged", "sinfo")
    if lack is not None:
        return lack
    with tempfile.TemporaryDirectory(prefix="espalier-slurm-") as folder:
        scripts = ROOT / "tests/e2e/slurm"
        why = _run(scripts / "up.sh", folder, 1, 1)
        _run(scripts / "down.sh", folder)
        return why


def ipv6():
    try:
        with socket.socket(socket.AF_INET6) as listener:
            listener.bind(("::1", 0))
    except OSError as error:
        return f"no socket listens on ::1: {error.strerror}"
    return None


def ptrace():
    """LeakSanitizer stops the threads of its process from another one. Who is traced already cannot be, nor its children."""
    libc = ctypes.CDLL(None, use_errno=True)
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.pause()
        os._exit(0)
    try:
        if libc.ptrace(PTRACE_ATTACH, child, None, None) != 0:
            return f"a process may not trace another one of its user: {os.strerror(ctypes.get_errno())}"
        os.waitpid(child, 0)
        libc.ptrace(PTRACE_DETACH, child, None, None)
        return None
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def shared_memory():
    try:
        with tempfile.TemporaryFile(dir="/dev/shm") as file:
            os.posix_fallocate(file.fileno(), 0, SHARED_MEMORY_MB << 20)
    except OSError as error:
        return f"/dev/shm has no {SHARED_MEMORY_MB} MB: {error.strerror}"
    return None


def unprivileged_user():
    if os.geteuid() != 0:
        return f"user {os.geteuid()} cannot become another one"

    def become():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    why = _in_child(become)
    return why and f"root cannot become user {NOBODY}: {why}"


def memory_group():
    sys.path.append(str(ROOT / "tests/e2e"))
    import memory_group as groups
    return groups.probe()


def browser():
    return _absent("chromium", "chromedriver")


def typescript():
    return _absent("tsc", "esbuild", "brotli")


def git_history():
    return _absent("git") or _run("git", "-C", ROOT, "rev-parse", "HEAD~1")


OF_NAMESPACES = ("root, or user namespaces for whom is not; a container with --cap-add=SYS_ADMIN --cap-add=NET_ADMIN "
                 "--security-opt apparmor=unconfined --security-opt seccomp=unconfined")
CAPABILITIES = {
    "namespaces": (namespaces, OF_NAMESPACES),
    "tun": (tun, f"{OF_NAMESPACES}, and --device=/dev/net/tun; modprobe tun outside where the kernel has it as a module"),
    "slurm": (slurm, "what its daemons say; scripts/setup.sh --tests installs them"),
    "ipv6": (ipv6, "sysctl net.ipv6.conf.lo.disable_ipv6=0; a container with --sysctl net.ipv6.conf.lo.disable_ipv6=0"),
    "ptrace": (ptrace, "a container with --cap-add=SYS_PTRACE; no debugger or strace around the tests; where there is "
                       "kernel.yama.ptrace_scope, at most 1"),
    "shared_memory": (shared_memory, "a container with --shm-size=1g"),
    "unprivileged_user": (unprivileged_user, "root; a container without --cap-drop of SETUID and SETGID"),
    "memory_group": (memory_group, "root, and control groups that can be written; a container with --privileged"),
    "browser": (browser, INSTALLS),
    "typescript": (typescript, INSTALLS),
    "git_history": (git_history, "a clone with its history: git fetch --unshallow"),
}


@functools.lru_cache(maxsize=None)
def _lack(name):
    """The Missing of a capability, or None."""
    probe, remedy = CAPABILITIES[name]
    try:
        why = probe()
    except Exception as error:  # a probe is not worth the suite
        why = f"{type(error).__name__}: {error}"
    return Missing(why, remedy) if isinstance(why, str) else why


def missing(names=None):
    """Of the named capabilities, or all: name -> Missing, of those that are not there. Each is tried once in a process. Raises
    ValueError for a name that is no capability."""
    names = list(CAPABILITIES if names is None else names)
    for name in names:
        if name not in CAPABILITIES:
            raise ValueError(f'capability "{name}": want one of {", ".join(CAPABILITIES)}')
    lacks = {name: _lack(name) for name in names}
    return {name: lack for name, lack in lacks.items() if lack is not None}


def need(case, *names):
    """Ends a case of unittest where it needs what this machine does not allow, and the rest of its file does without: it is left
    out, and fails where all has to run (ESPALIER_REQUIRE=all)."""
    lacks = "; ".join(f"{name}: {lack.reason} ({lack.remedy})" for name, lack in missing(names).items())
    if lacks and os.environ.get("ESPALIER_REQUIRE") == "all":
        case.fail(f"ESPALIER_REQUIRE=all, and this machine lacks what the test needs: {lacks}")
    if lacks:
        print(f"not tested: {case.id().removeprefix('__main__.')}: {lacks}", flush=True)  # for scripts/test.sh, which tells of it
        case.skipTest(lacks)


def main(arguments):
    if arguments[:1] == [INSIDE]:
        _go_on_inside(arguments[1])
        return
    for name in CAPABILITIES:
        lack = missing([name]).get(name)
        print(f"{name}: {'allowed' if lack is None else f'missing: {lack.reason}; what would allow it: {lack.remedy}'}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
