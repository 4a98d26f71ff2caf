"""A process that has imported what training imports, and from which replicas are forked.

The agent starts one as `python -c ... MODULE...` (trial_runner/agent/zygotes), with a socket as descriptor 3.
Once the modules are imported it says "ready", or "no" and why not. Each byte that then comes brings four
descriptors: the order, the replica's log, its control socket, and a socket on which the replica says its number
and waits for leave to begin.

A replica is forked twice, so that it becomes the agent's own child. One that supervises ranks is forked a third time and
then executed: that fork is the zygote from which it forks the processes above its ranks, and these have one each in the
same way. What a replica runs then meets what it would meet in a process of its own: this file is about the differences
between the two.
"""
import ctypes
import gc
import importlib
import importlib.machinery
import io
import os
import random
import runpy
import select
import signal
import socket
import struct
import sys

_AGENT = 3    # the socket to the agent; in a replica its control socket, as trial_runner/agent/processes/launch.h has it
_ORDER = 1    # bytes of the message that brings an order
_OWN_ZYGOTE = b"ESPALIER_OWN_ZYGOTE"  # as trial_runner/agent/zygotes/zygote.h has it
# What a replica says to the process between it and the zygote, and how that ends then.
_ORDERED, _NOBODY_ASKS = b"o\n", b"e\n"
_AGENT_GONE, _CANNOT_FORK, _LOST = 3, 4, 5
_WAIT = f'read -r said; case "$said" in o) exit 0;; e) exit {_AGENT_GONE};; esac; exit {_LOST}'
_SOON_S = 0.2  # others may be asked for at once
_BEGINS_S = 0.1  # what has just been forked comes to train meanwhile, on cores that are busy as it is
_MOST_LOST = 3  # replicas that ended while they waited; then the next is forked when it is asked for
_PR_SET_PDEATHSIG, _PR_SET_MM, _PR_SET_MM_MAP = 1, 35, 14

# While modules are imported. Threads of a pool do not survive a fork, and PyTorch asks NVML, instead of CUDA, where
# this is set.
_OUR_VARIABLES = {b"OPENBLAS_NUM_THREADS": b"1", b"PYTORCH_NVML_BASED_CUDA_CHECK": b"1"}
# Of what modules define next to nothing is garbage, and looking for it takes a tenth of the time of their import.
_SELDOM = (2**31 - 1, 10, 10)


def main():
    agent = socket.socket(fileno=_AGENT)
    start = _Start()
    os.environb.update(_OUR_VARIABLES)
    threads = _import(agent, sys.argv[1:])
    start.note_imports()
    order = None
    while order is None:
        descriptors = _serve(agent)
        # Here begins a replica.
        agent.detach()
        try:
            order = _Order(*descriptors)
            if order.is_executed:
                agent, order = order.execute(), None  # in the zygote beside it
            else:
                order.enter(start)
        except BaseException:  # before anything of it runs: the agent starts it as others are started
            os._exit(127)
    threads.restore()
    _run(order)


class _Start:
    """How this interpreter was started, perhaps by a wrapper that set variables. It sets some itself, and so do
    modules that are imported."""

    def __init__(self):
        self.interpreter = sys.orig_argv[0]
        self.folder = os.fsencode(os.getcwd())
        self.environment = dict(os.environb)
        with open("/proc/self/environ", "rb") as file:
            self.shown = dict(_pairs(file.read().split(b"\0")[:-1]))

    def note_imports(self):
        now = dict(os.environb)
        for name in _OUR_VARIABLES:
            now.pop(name, None)
            if name in self.environment:
                now[name] = self.environment[name]
        self.removed = self.environment.keys() - now.keys()
        self.environment = now

    def complete(self, given, folder, seen):
        """The environment that a process would see which is given this one, and started in that folder."""
        # A program of several slots has the threads of all, and this interpreter has those of one. It has started in another
        # folder, and been given what relative paths are in the program's.
        of_given = {b"OMP_NUM_THREADS"} if b"ESPALIER_OWN_THREADS" in given else set()
        if any(not path.startswith(b"/") for path in given.get(b"PYTHONPATH", b"/").split(b":")):
            of_given.add(b"PYTHONPATH")
        changed = {name: value for name, value in seen.items() if given.get(name) != value and name not in of_given}
        return given | {name: folder if value == self.folder else value for name, value in changed.items()}


def _pairs(entries):
    return [entry.partition(b"=")[::2] for entry in entries]


def _import(agent, modules):
    name = ""
    collections = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        for name in modules:
            importlib.import_module(name)
        name = "libespalier_torch.so"
        if "espalier.torch" in modules:
            from espalier import _library
            from espalier.torch import _first_use  # noqa: F401  for replicas that wait
            _library.load()
    except BaseException as error:
        _refuse(agent, f"cannot import {name}: {type(error).__name__}: {error}")
    count = len(os.listdir("/proc/self/task"))
    if count != 1:
        _refuse(agent, f"the imports have left {count - 1} threads, which a fork would lose")
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        _refuse(agent, "the imports have initialised CUDA, which does not survive a fork")
    threads = _LinearAlgebra()
    gc.collect()
    gc.freeze()  # what is never looked at is never copied
    if gc.get_threshold() == _SELDOM:
        gc.set_threshold(*collections)
    agent.sendall(b"ready\n")
    return threads


def _refuse(agent, reason):
    agent.sendall(b"no " + " ".join(reason.split()).encode(errors="replace")[:1000] + b"\n")
    os._exit(1)


def _serve(agent):
    """Forks for as long as the agent is there. Returns in the replicas, with the descriptors of each.

    The next replica has been forked before it is asked for, and takes the order itself: two forks of a process that has
    imported PyTorch take longer, on a machine whose cores train, than all else that a replica does before its program."""
    lost = 0  # replicas that ended while they waited
    rest_s = 0.0
    while True:
        sys.stdout.flush()
        sys.stderr.flush()
        select.select([agent], [], [], None if lost >= _MOST_LOST else rest_s)
        descriptors, waited = _fork(agent, rehearses=lost == 0)
        if descriptors is not None:
            return descriptors
        lost += not waited
        rest_s = _BEGINS_S


def _fork(agent, rehearses):
    """The descriptors: in a replica that has been ordered, after the agent has become its parent. None: in the zygote, when
    the next one can be forked. If that fails, the agent sees that no process holds the replica's descriptors. And False
    where the replica has ended before it was asked for."""
    zygote = os.getpid()
    ordered, order = os.pipe()
    orphaned, orphan = os.pipe()
    try:
        between = os.fork()
    except OSError:
        between = -1
    if between == 0:
        between = os.getpid()
        try:
            replica = os.fork()
        except BaseException:
            replica = -1
        os.close(order if replica else ordered)
        if replica != 0:
            agent.close()
            os._exit(_wait_for_order(zygote, ordered, orphan) if replica > 0 else _CANNOT_FORK)
        os.close(orphan)
        try:
            return _take_order(agent, order, orphaned, between, rehearses), True
        except OSError:  # of those above it, which have ended
            os._exit(1)
    for end in (ordered, order, orphaned, orphan):
        os.close(end)
    ended = _CANNOT_FORK
    if between > 0:
        ended = os.waitstatus_to_exitcode(os.waitpid(between, 0)[1])
    if ended == _AGENT_GONE:
        os._exit(0)
    if ended == _CANNOT_FORK:
        _drop_order(agent)
    return None, ended in (0, _CANNOT_FORK)


def _wait_for_order(zygote, ordered, orphan):
    """In the process between: it ends when its replica has the order, and not before, so that the agent, which adopts what
    it leaves, has asked for it. A shell waits in its place, whose end does not take the time that a process of this size
    takes to give its memory back."""
    try:
        _end_with(zygote)
        os.dup2(ordered, 0)
        os.set_inheritable(orphan, True)
        os.execve("/bin/sh", ["sh", "-c", _WAIT], {})
    except OSError:  # there is none
        said = os.read(ordered, 2)
    except BaseException:
        said = b""
    return 0 if said == _ORDERED else _AGENT_GONE if said == _NOBODY_ASKS else _LOST


def _take_order(agent, order, orphaned, between, rehearses):
    """In the replica. Where the processes above it have ended it is nobody's."""
    asked = lambda wait_s: select.select([agent, orphaned], [], [], wait_s)[0]
    if not asked(_SOON_S) and rehearses:
        _do_first_things(lambda: asked(0))
    if orphaned in asked(None):
        os._exit(0)
    message, descriptors, _, _ = socket.recv_fds(agent, _ORDER, 4, socket.MSG_CMSG_CLOEXEC)
    os.write(order, _ORDERED if message else _NOBODY_ASKS)
    if not message:
        os._exit(0)
    os.close(order)
    os.read(orphaned, 1)
    os.close(orphaned)
    while os.getppid() == between:  # a process that ends closes its files a moment before its children are others'
        os.sched_yield()
    return descriptors


def _do_first_things(asked):
    """What trains does now what takes long the first time, until it is asked for."""
    first_use = sys.modules.get("espalier.torch._first_use")
    if first_use is None:
        return
    rehearsal = first_use.rehearse()
    try:
        while not asked():
            next(rehearsal)
    except StopIteration:
        pass
    except Exception:  # of a PyTorch that a module has changed: the program will say what is wrong, if anything is
        pass
    rehearsal.close()
    if sys.modules["torch"].cuda.is_initialized():
        os._exit(1)  # which device is its own the order says


def _drop_order(agent):
    """Without a process for it: the agent sees that its descriptors are closed."""
    message, descriptors, _, _ = socket.recv_fds(agent, _ORDER, 4, socket.MSG_CMSG_CLOEXEC)
    if not message:
        os._exit(0)
    for descriptor in descriptors:
        os.close(descriptor)


class _Order:
    """What the agent asks for: fields that each end with a zero byte."""

    def __init__(self, order, log, control, leave):
        self.log, self.control, self.leave = log, control, leave
        with open(order, "rb") as file:
            file.seek(0)
            agent, directory, kind, place, count, *rest = file.read().split(b"\0")[:-1]
        self.agent, self.directory, self.is_module, self.place = int(agent), directory, kind == b"module", int(place)
        self.is_executed = kind == b"ranks"
        self.command = rest[:int(count)]
        self.environment = dict(_pairs(rest[int(count):]))

    def execute(self):
        """Becomes a program that supervises ranks. Returns in a fork of this process: the zygote of that program, with
        the socket to it."""
        _end_with(self.agent)
        os.setpgid(0, 0)
        here, there = socket.socketpair()
        program = os.getpid()
        zygote = os.fork()
        if zygote == 0:
            os.setpgid(0, 0)  # before it forks
            for descriptor in (self.log, self.control, self.leave):
                os.close(descriptor)
            here.close()
            _end_with(program)
            os.dup2(there.fileno(), _AGENT, inheritable=False)
            there.close()
            return socket.socket(fileno=_AGENT)
        os.setpgid(zygote, zygote)
        os.dup2(self.log, 1)
        os.dup2(self.log, 2)
        os.dup2(self.control, _AGENT)
        os.chdir(self.directory)
        self._begin()
        here.set_inheritable(True)
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python
            signal.signal(ignored, signal.SIG_DFL)
        self.environment[_OWN_ZYGOTE] = f"{zygote} {here.fileno()}".encode()
        os.execve(self.command[0], self.command, self.environment)

    def _begin(self):
        os.write(self.leave, f"{os.getpid()}\n".encode())
        if not os.read(self.leave, 1):
            raise RuntimeError("the agent has not waited for it")
        os.close(self.leave)

    def enter(self, start):
        """Makes this process what a new one would be, and begins when the agent says so."""
        prctl = _end_with(self.agent)
        os.setpgid(0, 0)
        os.dup2(self.log, 1)
        os.dup2(self.log, 2)
        os.dup2(self.control, _AGENT)
        os.close(self.log)
        os.close(self.control)
        os.chdir(self.directory)
        self.command[0] = os.fsencode(start.interpreter)
        shown = start.complete(self.environment, self.directory, start.shown)
        _show_as(prctl, self.command, [name + b"=" + value for name, value in shown.items()])
        os.environ.clear()
        os.environb.update(start.complete(self.environment, self.directory, start.environment))
        for name in start.removed:
            os.environb.pop(name, None)
        self._begin()


def _end_with(parent):
    """Has the kernel end this process with its parent. Returns the call by which it is told."""
    prctl = ctypes.CDLL(None).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    if prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != parent:
        raise RuntimeError("it is not the child of who has asked for it")
    return prctl


def _show_as(prctl, command, environment):
    """Makes /proc/PID/cmdline and environ show the program that is run, for tools that look for the process there.
    The kernel may be built without this; then they show the zygote's."""
    texts = [b"".join(text + b"\0" for text in texts) for texts in (command, environment)]
    shown = [ctypes.create_string_buffer(text, len(text)) for text in texts]
    _show_as.kept = shown
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    # proc(5): the fields from the third on are here from 0 on.
    start_code, end_code, start_stack = (int(fields[n - 3]) for n in (26, 27, 28))
    start_data, end_data, start_brk = (int(fields[n - 3]) for n in (45, 46, 47))
    libc = ctypes.CDLL(None)
    libc.sbrk.restype, libc.sbrk.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t]
    places = [place for text in shown for place in (ctypes.addressof(text), ctypes.addressof(text) + len(text))]
    layout = struct.pack("=12QII", start_code, end_code, start_data, end_data, start_brk, libc.sbrk(0), start_stack,
                         *places, 0, 0, 0xffffffff)  # neither auxiliary vector nor executable
    given = ctypes.create_string_buffer(layout, len(layout))
    prctl(_PR_SET_MM, _PR_SET_MM_MAP, ctypes.addressof(given), len(layout), 0)


class _LinearAlgebra:
    """OpenBLAS, which reads its number of threads when it is loaded. Here it may have none beside this one."""

    def __init__(self):
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            paths = {line.split(maxsplit=5)[5].rstrip("\n") for line in file
                     if "openblas" in line and ".so" in line}
        names = [f"{before}openblas_set_num_threads{after}" for before in ("", "scipy_") for after in ("", "64_")]
        libraries = [ctypes.CDLL(path) for path in sorted(paths) if os.path.exists(path)]
        self._set = [getattr(library, name) for library in libraries for name in names if hasattr(library, name)]

    def restore(self):
        wanted = next((os.environ[name] for name in ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
                       if os.environ.get(name, "").isdigit()), "0")
        cores = len(os.sched_getaffinity(0))
        threads = min(int(wanted) or cores, cores)
        for set_threads in self._set if threads > 1 else ():
            set_threads(threads)


def _settle_modules():
    """What modules have kept since they were imported, and each process has of its own."""
    random.seed()
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        numbers.seed()
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.ORIGINAL_DIR = os.getcwd()
        process.current_process()._config["authkey"] = process.AuthenticationString(os.urandom(32))
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.cuda._cached_device_count = None
        threads = os.environ.get("OMP_NUM_THREADS", "")
        if "ESPALIER_OWN_THREADS" in os.environ and threads.isdigit() and threads != "0":
            torch.set_num_threads(int(threads))


def _run(order):
    """Runs the program as `python SCRIPT` or `python -m MODULE` would. It is __main__, its exceptions end the
    interpreter, and their traces begin with it."""
    _settle_modules()
    command = [os.fsdecode(word) for word in order.command]
    sys.orig_argv = command
    program, rest = command[order.place], command[order.place + 1:]
    folder = os.getcwd() if order.is_module else os.path.dirname(os.path.realpath(program))
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)
    sys.argv = ["-m" if order.is_module else program, *rest]
    try:
        if order.is_module:
            runpy._run_module_as_main(program)
        else:
            _run_script(program)
    except SystemExit as error:
        sys.exit(error.code)  # the trial takes its exit code from this call
    except BaseException:
        _hide_callers()
        raise


def _run_script(given):
    path = os.path.join(os.getcwd(), given.removeprefix("./"))
    module = sys.modules["__main__"].__dict__
    module["__file__"], module["__cached__"] = path, None
    module["__loader__"] = importlib.machinery.SourceFileLoader("__main__", path)
    with io.open_code(path) as file:
        source = file.read()
    exec(compile(source, path, "exec", dont_inherit=True), module)


def _hide_callers():
    """The interpreter shows the exception as it ends, from the program's first frame on."""
    hook = sys.excepthook

    def show(kind, error, trace):
        while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, "<string>"):
            trace = trace.tb_next
        error.__traceback__ = trace
        hook(kind, error, trace)

    sys.excepthook = show
