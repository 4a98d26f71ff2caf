#!/usr/bin/env python3
# bench: busy_threads - an epoch of fashion_mnist with two threads by how long OpenMP's idle threads spin, alone and beside one busy process
# builds: fashion_mnist
"""The second epoch's seconds, as a replica alone would take them. `default` is libgomp's own spin count (300,000), `ours` the
one that agents give to replicas (trial_runner/agent/trial_environment.cc). Says something on two cores: with
more, one busy process takes nobody's."""
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

from bench_run import BIN, usual_or_smoke

OURS = 1000
SPIN_COUNTS = usual_or_smoke((None, 0, 100, 300, 1000, 3000, 10_000, 30_000), (OURS,))
REPEATS = usual_or_smoke(3, 1)
WORK = usual_or_smoke([], ["--images", "8000", "--set", "width=1", "--set", "batch_size=2048"])


@contextlib.contextmanager
def busy_process(wanted):
    if not wanted:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def epoch_s(threads, spin_count):
    """From the first epoch's report to the second's."""
    environment = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    environment |= {"ESPALIER_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    if spin_count is not None:
        environment["GOMP_SPINCOUNT"] = str(spin_count)
    command = [os.path.join(BIN, "fashion_mnist"), "--epochs", "2", "--set", "seed=1", *WORK]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        reports = [time.monotonic() for line in process.stdout if line.startswith("report ")]
    assert process.returncode == 0 and len(reports) == 2, (process.returncode, reports)
    return reports[1] - reports[0]


def measure(threads, spin_count):
    found = {}
    for name, busy in (("quiet", False), ("busy", True)):
        with busy_process(busy):
            times = [epoch_s(threads, spin_count) for _ in range(REPEATS)]
        found[name] = round(statistics.median(times), 1)
    print(f"{threads} threads, spin count {'default' if spin_count is None else spin_count}: {found['quiet']} s, "
          f"beside a busy process {found['busy']} s", flush=True)
    return found


def main():
    figures = {}
    for spin_count in SPIN_COUNTS:
        name = "default" if spin_count is None else f"spin_{spin_count}"
        figures |= {f"{name}_{how}_s": s for how, s in measure(2, spin_count).items()}
    figures |= {f"one_thread_{how}_s": s for how, s in measure(1, OURS).items()}
    for how in ("quiet", "busy"):
        figures[f"ours_{how}_s"] = figures[f"spin_{OURS}_{how}_s"]
    print(json.dumps({"ours": OURS, **figures}))


if __name__ == "__main__":
    main()
