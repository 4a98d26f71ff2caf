#!/usr/bin/env python3
# bench: optuna_capacity - calls a second of Optuna's storage protocol, our service with synchronous=FULL beside Optuna's own proxy on SQLite and in memory
# builds: tuner bench_optuna_load
"""One compiled client loads each server in turn, in several rounds of one run; medians of the rounds' ratios. Then Optuna's
own Python client runs a study against ours and against Optuna's proxy in memory."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from bench_run import optuna_load, serve, setup_optuna, told_address, usual_or_smoke

HERE = pathlib.Path(__file__).parent
CONNECTIONS = 8
TRIALS = usual_or_smoke({"ours": 6000, "inmemory": 1500, "sqlite": 120},  # some seconds each
                        {"ours": 80, "inmemory": 80, "sqlite": 8})
SERIAL_TRIALS = usual_or_smoke({"ours": 300, "sqlite": 40}, {"ours": 5, "sqlite": 2})
CLIENT_TRIALS = usual_or_smoke(150, 5)


class Server:
    """One of the three servers, on a database of its own."""

    def __init__(self, kind, python, folder):
        self.kind = kind
        database = os.path.join(folder, f"{kind}.db")
        if kind == "ours":
            self.process = serve(database)
        else:
            self.process = subprocess.Popen([python, str(HERE / "peers" / "optuna_proxy.py"), kind, database],
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = told_address(self.process)

    def load(self, connections, in_flight, trials):
        return optuna_load(self.address, connections, in_flight, trials)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def client_trials_per_s(python, address):
    done = subprocess.run([python, HERE / "peers" / "optuna_client.py", address, str(CLIENT_TRIALS)], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])["trials_per_s"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=usual_or_smoke(3, 1))
    parser.add_argument("--in-flight", type=int, default=8, help="trials that each of the 8 connections runs at once")
    options = parser.parse_args()
    python = setup_optuna("5.0.0")
    kinds = ["ours", "inmemory", "sqlite"]
    rounds = []
    for number in range(options.rounds):
        figures = {}
        for kind in kinds if number % 2 == 0 else reversed(kinds):
            with tempfile.TemporaryDirectory() as folder:
                server = Server(kind, python, folder)
                try:
                    server.load(1, 1, 5)  # until it answers
                    figures[kind] = server.load(CONNECTIONS, options.in_flight, TRIALS[kind])
                    if kind in SERIAL_TRIALS:
                        figures[kind]["serial"] = server.load(1, 1, SERIAL_TRIALS[kind])["calls_per_s"]
                    if kind != "sqlite":
                        figures[kind]["client"] = client_trials_per_s(python, server.address)
                finally:
                    server.stop()
            print(f"round {number + 1}, {kind}: {json.dumps(figures[kind])}", file=sys.stderr, flush=True)
        rounds.append(figures)

    def ratio(of, a, b):
        return round(statistics.median(of(r[a]) / of(r[b]) for r in rounds), 2)

    def rate(f):
        return f["calls_per_s"]

    print(json.dumps({
        "over_sqlite": ratio(rate, "ours", "sqlite"),
        "over_inmemory": ratio(rate, "ours", "inmemory"),
        "p99_ms": round(statistics.median(r["ours"]["p99_ms"] for r in rounds), 2),
        "serial_over_sqlite": ratio(lambda f: f["serial"], "ours", "sqlite"),
        "python_client_over_inmemory": ratio(lambda f: f["client"], "ours", "inmemory"),
        "calls_per_s": round(statistics.median(r["ours"]["calls_per_s"] for r in rounds)),
        "inmemory_calls_per_s": round(statistics.median(r["inmemory"]["calls_per_s"] for r in rounds)),
        "sqlite_calls_per_s": round(statistics.median(r["sqlite"]["calls_per_s"] for r in rounds)),
    }))


if __name__ == "__main__":
    main()
