#!/usr/bin/env python3
# bench: optuna_scale - a study of 100,000 trials and 1,000,000 intermediate values through Optuna's storage protocol
# builds: tuner bench_fill_database bench_optuna_load
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

from bench_run import BIN, TUNER, optuna_load, resident_mb, serve, setup_optuna, told_address, usual_or_smoke

HERE = pathlib.Path(__file__).parent
LOAD_TRIALS = usual_or_smoke(1000, 10)
REMOVAL_TRIALS = usual_or_smoke(3000, 30)


def start(database):
    """The service, its address, and seconds until it answered its first call."""
    begun = time.monotonic()
    process = serve(database)
    address = told_address(process)
    subprocess.run([TUNER, "ls", "--service", address], check=True, stdout=subprocess.DEVNULL)
    return process, address, time.monotonic() - begun


def load(address):
    return optuna_load(address, 1, 4, LOAD_TRIALS)["p50_ms"]


def remove(address):
    """Deletes the large study while another client works: seconds that took, and the longest that the other waited."""
    with concurrent.futures.ThreadPoolExecutor() as beside:
        working = beside.submit(optuna_load, address, 1, 4, REMOVAL_TRIALS)
        time.sleep(0.3)
        begun = time.monotonic()
        subprocess.run([TUNER, "rm", "filled", "--service", address], check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begun, working.result()["max_ms"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=usual_or_smoke(100_000, 200))
    parser.add_argument("--values", type=int, default=10, help="of each trial")
    options = parser.parse_args()
    python = setup_optuna("5.0.0")
    with tempfile.TemporaryDirectory() as folder:
        full, empty = os.path.join(folder, "full.db"), os.path.join(folder, "empty.db")
        subprocess.run([os.path.join(BIN, "bench_fill_database"), "optuna", full, str(options.trials),
                        str(options.values)], check=True)
        recoveries = []
        for _ in range(3):
            process, _, seconds = start(full)
            recoveries.append(seconds)
            process.terminate()
            process.wait()
        process, address, _ = start(full)
        beside, fresh, _ = start(empty)
        try:
            done = subprocess.run([python, HERE / "peers" / "optuna_reader.py", address], check=True,
                                  capture_output=True, text=True)
            figures = json.loads(done.stdout.splitlines()[-1])
            assert figures["trials"] == options.trials, figures
            rounds = [(load(address), load(fresh)) for _ in range(5)]
            rss = resident_mb(process.pid)
            rm_s, rm_stall_ms = remove(address)
        finally:
            for p in (process, beside):
                p.terminate()
                p.wait()
    print(json.dumps({
        "recovery_s": round(statistics.median(recoveries), 3),
        "rss_mb": round(rss, 1),
        "get_trials_p50_ms": round(figures["incremental_p50_ms"], 3),
        "report_slowdown": round(statistics.median(a / b for a, b in rounds), 3),
        "rm_s": round(rm_s, 3),
        "rm_stall_ms": round(rm_stall_ms, 1),
        "first_load_s": round(figures["first_load_s"], 3),
        "first_load_mb": round(figures["bytes"] / 1e6, 1),
    }))


if __name__ == "__main__":
    main()
