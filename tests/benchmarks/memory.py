#!/usr/bin/env python3
# bench: memory - resident memory of `tuner serve` with 10,000 finished trials of 20 values each, beside an empty service
# builds: tuner bench_fill_database
import json
import os
import subprocess
import tempfile
import urllib.request

from bench_run import BIN, resident_mb, start_service, usual_or_smoke

TRIALS, VALUES = usual_or_smoke(10_000, 100), 20


def measure(database, expect):
    with start_service(database) as (process, _, http):
        # As a page that follows the study would ask, so that what answering takes is counted.
        for _ in range(3):
            with urllib.request.urlopen(f"http://{http}/api/studies", timeout=60) as answer:
                studies = json.load(answer)["studies"]
        assert sum(int(n) for s in studies for n in s["trials_by_state"].values()) == expect, studies
        return resident_mb(process.pid)


def main():
    with tempfile.TemporaryDirectory() as folder:
        full = os.path.join(folder, "full.db")
        subprocess.run([os.path.join(BIN, "bench_fill_database"), "pool", full, str(TRIALS), str(VALUES)], check=True)
        with_trials = measure(full, TRIALS)
        empty = measure(os.path.join(folder, "empty.db"), 0)
    print(json.dumps({"rss_mb": round(with_trials, 1), "empty_rss_mb": round(empty, 1)}))


if __name__ == "__main__":
    main()
