#!/usr/bin/env python3
# bench: fairness - small trials beside trials of 2, 3 and 4 slots on 4 slots: waits, and each study's share
# builds: tuner bench_fairness_virtual
"""On virtual time by the core that ships, under every policy, with shares of 1/4, 1 and 4 and trials of 1, 10 and 100
seconds; and once for each size on a service with an agent, with commands of a second. `longest_wait_over_trial` is the
longest time in which a study ran nothing though it had had no more than its share, in lengths of the other study's
trials; `share_error` the difference of its part of all slot-seconds from its share."""
import json
import os
import pathlib
import subprocess
import tempfile
import time

from bench_run import BIN, TUNER, export, serve, told_address, usual_or_smoke

SLOTS = 4
TRIAL_S = 1
SIZES = usual_or_smoke([2, 3, 4], [4])
LIVE_S = usual_or_smoke(100, 8)
STUDY = {"metric": {"name": "v", "direction": "minimize", "from_output": "v=(.*)"}, "sampler": "random", "trials": 100_000,
         "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
         "command": ["sh", "-c", f"echo v=$1; exec sleep {TRIAL_S}", "sh", "{x}"]}


def virtual_rows():
    program = [os.path.join(BIN, "bench_fairness_virtual"), *usual_or_smoke([], ["--smoke"])]
    done = subprocess.run(program, check=True, capture_output=True, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [(row["policy"], row["gang"], row["share_error"], row["wait_over_trial"]) for row in rows]


def spans_of(database, study, until):
    """(from, to, slots) of each time that a trial held slots."""
    record = export(database, study)
    if record["study"]["state"] != "STUDY_STOPPED" or any(trial["state"] == "TRIAL_FAILED" for trial in record["trials"]):
        raise SystemExit(f"the trials of {study} failed: {record['study'].get('reason', '')}")
    spans = [(span["from"], min(span.get("to") or until, until), len(span["slots"]))
             for trial in record["trials"] for span in trial.get("spans", [])]
    return sorted(span for span in spans if span[0] < until)


def longest_wait(spans, begin, until, part):
    """As the virtual one: idle time but for what the study had had too much."""
    longest, at, owed = 0, begin, 0
    for start, end, slots in [*spans, (until, until, 0)]:
        idle = max(0, start - at)
        longest = max(longest, idle - min(idle, max(0, -owed / part)))
        owed += idle * part
        at = max(at, start)
        busy = max(0, end - at)
        owed += busy * part - (end - start) * slots
        at = max(at, end)
    return longest


def live_row(size):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        service = serve(folder / "pool.db")
        address = told_address(service)
        agent = subprocess.Popen([TUNER, "agent", "--join", address, "--slots", str(SLOTS), "--dir", folder / "agent"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for study, slots in (("small", 1), ("gang", size)):
                file = folder / f"{study}.json"
                file.write_text(json.dumps({**STUDY, "name": study, "slots": slots}))
                subprocess.run([TUNER, "submit", file, "--service", address], check=True, stdout=subprocess.DEVNULL)
            begin = time.time()
            time.sleep(LIVE_S)
            until = time.time()
            subprocess.run([TUNER, "stop", "gang", "--service", address], check=True, stdout=subprocess.DEVNULL)
            subprocess.run([TUNER, "stop", "small", "--service", address], check=True, stdout=subprocess.DEVNULL)
        finally:
            for process in (agent, service):
                process.terminate()
                process.wait()
        spans = {study: spans_of(folder / "pool.db", study, until) for study in ("small", "gang")}
    held = {study: sum((end - start) * slots for start, end, slots in rows) for study, rows in spans.items()}
    error = abs(held["gang"] / sum(held.values()) - 0.5)
    wait = max(longest_wait(rows, begin, until, SLOTS / 2) for rows in spans.values()) / TRIAL_S
    return "live", size, error, wait


def main():
    rows = virtual_rows()
    for size in SIZES:
        rows.append(live_row(size))
    for name in sorted({row[0] for row in rows}):
        own = [row for row in rows if row[0] == name]
        print(f"{name:20} share error {max(row[2] for row in own):.3f}   wait {max(row[3] for row in own):5.2f} trials")
    print(json.dumps({"longest_wait_over_trial": round(max(row[3] for row in rows), 2),
                      "share_error": round(max(row[2] for row in rows), 3),
                      "live_wait_over_trial": round(max(row[3] for row in rows if row[0] == "live"), 2),
                      "live_share_error": round(max(row[2] for row in rows if row[0] == "live"), 3)}))


if __name__ == "__main__":
    main()
