#!/usr/bin/env python3
# bench: kill_service - kill -9 of the service 1,000 times while Optuna's clients write: nothing acknowledged is lost or doubled
# builds: tuner
import os
import pathlib
import sys

from bench_run import usual_or_smoke

TEST = pathlib.Path(__file__).resolve().parents[1] / "e2e" / "optuna" / "kill_test.py"

if __name__ == "__main__":
    kills = sys.argv[1] if len(sys.argv) > 1 else usual_or_smoke("1000", "2")
    os.execv(sys.executable, [sys.executable, str(TEST), "--kills", kills])
