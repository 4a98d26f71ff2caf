"""What takes processor time beside tests (scripts/test.sh --beside-load), until its parent ends: two processes take all they get,
and where real-time priority is allowed (to root), all processors at once are taken away now and then, for up to 2.5 seconds, as a
virtual machine sees it whose host is busy. Of each of these seconds the kernel leaves 50 ms to others (kernel.sched_rt_runtime_us),
so that nothing stands still for more than 0.95 seconds at once."""
import contextlib
import os
import pathlib
import random
import subprocess
import sys
import time

LOOPS = 2
PAUSE_S = 0.4  # on average, between two times at which the machine stands still
STALLS_S = (0.03, 0.05, 0.05, 0.1, 0.3, 1, 2.5)
SEED = 5


@contextlib.contextmanager
def beside():
    """Beside what runs within."""
    process = subprocess.Popen([sys.executable, "-B", str(pathlib.Path(__file__).resolve())], stdin=subprocess.PIPE)
    try:
        yield
    finally:
        process.stdin.close()
        process.wait()


def is_wanted(parent):
    return os.getppid() == parent


def loop(parent):
    while is_wanted(parent):
        pass


def stand_still(parent, processor, at):
    """The same times on each processor."""
    os.sched_setaffinity(0, {processor})
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_get_priority_min(os.SCHED_FIFO)))
        times = random.Random(SEED)
        while is_wanted(parent):
            at += times.expovariate(1 / PAUSE_S)
            time.sleep(max(0, at - time.monotonic()))
            at += times.choice(STALLS_S)
            while time.monotonic() < at:
                pass


def main():
    parent, now = os.getpid(), time.monotonic()
    of_processors = [(stand_still, processor, now) for processor in os.sched_getaffinity(0)]
    for call, *arguments in [*[(loop,)] * LOOPS, *of_processors]:
        if os.fork() == 0:
            sys.stdin.close()
            call(parent, *arguments)
            os._exit(0)
    sys.stdin.read()  # until its end


if __name__ == "__main__":
    main()
