#!/usr/bin/env python3
# bench: replica_loss - next step of the survivors after one of three replicas is killed, and after one hangs (SIGSTOP), beside torchrun
# builds: tuner bench_resize_trial
"""A real service and agent. Counted from the signal to the first step that the last of the two
survivors has made in a new group. torchrun starts all its workers again when one is lost: counted from
the signal to their first step, with the same model and no checkpoint to load."""
import json
import os
import pathlib
import signal
import statistics
import subprocess
import time

from bench_run import SMOKE, peers_python, quantile, usual_or_smoke
from elastic_pool import in_cpp, start_pool

REPLICAS, KILLED, HUNG, LEASE_S = 3, *usual_or_smoke((15, 5, 1.0), (2, 1, 20.0))  # a busy machine may keep one from its word


def next_step_ms(pool, rank, number):
    pool.await_size(REPLICAS)
    members = pool.members()
    victim = members.pop(rank)
    generation = pool.last().generation

    def first_steps():
        first = [next((s.time for s in pool.steps()[pid] if s.generation > generation), None)
                 for pid in members.values()]
        return None if None in first else first

    begun = time.clock_gettime(time.CLOCK_MONOTONIC)
    os.kill(victim, number)
    return 1000 * (max(pool.wait(first_steps)) - begun)


def torchrun_ms():
    """After kill -9 of each of its workers in turn, or None if torchrun does not run here."""
    script = pathlib.Path(__file__).parent / "peers" / "torchrun_loss.py"
    run = subprocess.run([peers_python(), script, str(REPLICAS)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True)
    if run.returncode != 0:
        print(f"torchrun did not run: {run.stderr[-2000:]}", flush=True)
        return None
    return json.loads(run.stdout.splitlines()[-1])


def main(program=in_cpp):
    with start_pool("small", slots=REPLICAS, agent_flags=["--replica-lease", LEASE_S], program=program) as pool:
        pool.pin(REPLICAS)
        killed = []
        for i in range(KILLED):
            killed.append(next_step_ms(pool, i % REPLICAS, signal.SIGKILL))
            print(f"killed rank {i % REPLICAS}: {killed[-1]:.1f} ms", flush=True)
        hung = []
        for i in range(HUNG):
            hung.append(next_step_ms(pool, i % REPLICAS, signal.SIGSTOP))
            print(f"stopped rank {i % REPLICAS}: {hung[-1]:.1f} ms", flush=True)
    theirs = None if SMOKE else torchrun_ms()
    print(json.dumps({
        "killed_ms": round(quantile(killed, 0.5), 1), "killed_worst_ms": round(max(killed), 1),
        "hung_ms": round(quantile(hung, 0.5), 1), "hung_worst_ms": round(max(hung), 1),
        "lease_ms": round(1000 * LEASE_S), "killed": KILLED, "hung": HUNG,
        "torchrun_killed_ms": round(statistics.median(theirs)) if theirs else None}))


if __name__ == "__main__":
    main()
