#!/usr/bin/env python3
# bench: resize - pause of training at in-place resizes 1->2->4->2->1, small and large model, beside torchrun elastic, AdaptDL 0.2.11, Ray Tune's ResourceChangingScheduler and our own stop and resume
# builds: tuner bench_resize_trial
"""A real service and agent, `tuner pin` to ask for sizes. Our pause is what a surviving replica itself
saw between its last step of the old group and its first of the new one; a peer's is the time from
its asking for the change to the first step of the new size, with the same small model. Ours counts
from the last step too: what comes before (starting the new replicas) training does not notice."""
import json
import pathlib
import statistics
import subprocess

from bench_run import peers_python, quantile
from elastic_pool import STUDY, pauses, start_pool

SIZES = (2, 4, 2, 1)
CYCLES, LARGE_CYCLES, RESTARTS = 15, 5, 3
PEERS = ("torchrun", "adaptdl", "ray")


def resizes(pool, cycles, name):
    for cycle in range(cycles):
        for slots in SIZES:
            pool.resize(slots)
        print(f"{name}: cycle {cycle + 1}/{cycles}", flush=True)
    return [1000 * p for p in pauses(pool.steps())]


def restarts(pool):
    """Stopping the trial into its checkpoint and resuming it, in new processes."""
    found = []
    for _ in range(RESTARTS):
        known = set(pool.steps())
        pool.tuner("stop", STUDY)
        pool.wait(lambda: pool.trial()["state"] == "TRIAL_PAUSED")
        left = pool.last().time
        pool.tuner("resume", STUDY)
        pool.wait(lambda: any(s for pid, s in pool.steps().items() if pid not in known))
        found.append(1000 * (min(s[0].time for pid, s in pool.steps().items() if pid not in known and s) - left))
    return found


def peer(name):
    """Its pauses in milliseconds by kind of change, or None if it does not run here."""
    script = pathlib.Path(__file__).parent / "peers" / f"{name}_resize.py"
    run = subprocess.run([peers_python(), script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        print(f"{name} did not run: {run.stderr[-2000:]}", flush=True)
        return None
    found = json.loads(run.stdout.splitlines()[-1])
    print(f"{name}: {found}", flush=True)
    return found


def main():
    with start_pool("small", slots=4) as pool:
        small = resizes(pool, CYCLES, "small")
    with start_pool("small", slots=1, agent_flags=("--spare-memory", 0)) as pool:
        restart = restarts(pool)
    with start_pool("large", slots=4) as pool:
        large = resizes(pool, LARGE_CYCLES, "large")
    p50 = quantile(small, 0.5)
    figures = {"p50_ms": round(p50, 1), "p99_ms": round(quantile(small, 0.99), 1), "pauses": len(small),
               "large_p50_ms": round(quantile(large, 0.5), 1), "large_worst_ms": round(max(large), 1),
               "restart_p50_ms": round(quantile(restart, 0.5), 1),
               "restart_over_resize": round(quantile(restart, 0.5) / max(p50, 0.1), 1)}
    for name in PEERS:
        found = peer(name)
        # The kind of change at which the peer is quickest counts.
        theirs = min(statistics.median(times) for times in found.values()) if found else None
        figures[f"{name}_ms"] = round(theirs) if theirs else None
        figures[f"{name}_over_ours"] = round(theirs / max(p50, 0.1), 1) if theirs else None
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
