#!/usr/bin/env python3
# bench: resize - in-place resizes 1->2->4->2->1, small and large model: how long training stands still, and from request to first step; beside torchrun elastic, AdaptDL 0.2.11, Ray Tune's ResourceChangingScheduler and our own stop and resume
# builds: tuner bench_resize_trial
"""Two times of each change, the same for everybody, and nothing is subtracted from either:
  still    from the last step of the old size to the first step of the new one, so with all of that step:
           `step_of_N_ms` says what steps on N replicas take;
  request  from the request to the first step of the new size (ours begins before `tuner pin` starts).

Ours on a real service and agent. `warm`: the agent keeps replicas that have left as spares, its
default, and the first cycle, in which there are none yet, is not counted. `cold`: it keeps none, so each
joiner is a new process. Peers have nothing like spares. All with the same small model; peers change
between 1 and 2, so that their times stand beside ours of the same changes."""
import json
import pathlib
import statistics
import subprocess

from bench_run import peers_python, quantile, usual_or_smoke
from elastic_pool import STUDY, in_cpp, start_pool

SIZES = (2, 4, 2, 1)
CYCLES, LARGE_CYCLES, RESTARTS = usual_or_smoke((15, 5, 3), (1, 1, 1))
PEERS = usual_or_smoke(("torchrun", "adaptdl", "ray"), ())
# What is changed, by name: (model, flags of the agent, cycles). One of each kind tells whether it still runs.
WITHOUT_SPARES = ("--spare-memory", 0)
MODES = {"warm": ("small", (), CYCLES), "cold": ("small", WITHOUT_SPARES, CYCLES),
         "large_warm": ("large", (), LARGE_CYCLES), "large_cold": ("large", WITHOUT_SPARES, LARGE_CYCLES)}
MEASURED = usual_or_smoke(tuple(MODES), ("cold", "large_warm"))
KINDS = {"grow": (1, 2), "shrink": (2, 1)}


def resizes(workload, cycles, agent_flags, name, program):
    """The changes of so many cycles through SIZES, after one that is not counted, and the median time of a step by
    the number of replicas."""
    found = []
    with start_pool(workload, slots=max(SIZES), agent_flags=agent_flags, program=program) as pool:
        pool.pin(1)  # a program that takes long to start may have more from the beginning
        for cycle in range(1 + cycles):
            changes = [pool.resize(slots) for slots in SIZES]
            found += changes if cycle > 0 else []
            print(f"{name}: cycle {cycle} of {cycles}: " + ", ".join(
                f"{c.old}->{c.new} still {1000 * c.still_s:.1f} ms, request {1000 * c.request_s:.1f} ms"
                for c in changes), flush=True)
        return found, step_times(pool.steps())


def step_times(steps):
    """Median seconds from one step to the next of the same group, by its number of replicas."""
    times = {}
    for mine in steps.values():
        for before, after in zip(mine, mine[1:]):
            if after.generation == before.generation:
                times.setdefault(after.replicas, []).append(after.time - before.time)
    return {replicas: statistics.median(each) for replicas, each in times.items()}


def restarts(pool):
    """Milliseconds of stopping the trial into its checkpoint and resuming it, in new processes."""
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
    """{"grow": [[still ms, request ms]...], "shrink": ...}, or None if it does not run here."""
    script = pathlib.Path(__file__).parent / "peers" / f"{name}_resize.py"
    run = subprocess.run([peers_python(), script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        print(f"{name} did not run: {run.stderr[-2000:]}", flush=True)
        return None
    found = json.loads(run.stdout.splitlines()[-1])
    print(f"{name}: {found}", flush=True)
    return found


def median_ms(changes, kind):
    """(still, request) of one kind of change."""
    of_kind = [c for c in changes if (c.old, c.new) == KINDS[kind]]
    return [1000 * statistics.median(times) for times in zip(*((c.still_s, c.request_s) for c in of_kind))]


def spread(name, changes):
    still = [1000 * c.still_s for c in changes]
    request = [1000 * c.request_s for c in changes]
    return {f"{name}_still_p50_ms": round(quantile(still, 0.5), 1), f"{name}_still_worst_ms": round(max(still), 1),
            f"{name}_request_p50_ms": round(quantile(request, 0.5), 1),
            f"{name}_request_worst_ms": round(max(request), 1)}


def beside(name, ours):
    """A peer's times by kind of change, and over ours of the same kind, warm and cold."""
    figures, found = {}, peer(name)
    for kind in KINDS:
        theirs = [statistics.median(times) for times in zip(*found[kind])] if found else [None, None]
        for what, ms, index in (("still", theirs[0], 0), ("request", theirs[1], 1)):
            figures[f"{name}_{kind}_{what}_ms"] = ms and round(ms)
            for heat, changes in ours.items():
                figures[f"{name}_{kind}_{what}_over_{heat}"] = ms and round(ms / median_ms(changes, kind)[index], 1)
    return figures


def main(program=in_cpp):
    changes_of, steps_of = {}, {}
    for name in MEASURED:
        workload, agent_flags, cycles = MODES[name]
        changes_of[name], steps_of[name] = resizes(workload, cycles, agent_flags, name, program)
    small = {name: changes for name, changes in changes_of.items() if MODES[name][0] == "small"}
    with start_pool("small", slots=1, agent_flags=WITHOUT_SPARES, program=program) as pool:
        restart = quantile(restarts(pool), 0.5)
    figures = {"restart_ms": round(restart, 1)}
    for name, changes in changes_of.items():
        figures |= spread(name, changes)
        figures |= {f"{name}_step_of_{n}_ms": round(1000 * s, 1) for n, s in sorted(steps_of[name].items())}
    for heat, changes in small.items():
        for kind in KINDS:
            still, request = median_ms(changes, kind)
            figures |= {f"{heat}_{kind}_still_ms": round(still, 1), f"{heat}_{kind}_request_ms": round(request, 1)}
    for name in PEERS:
        figures |= beside(name, small)
    print(json.dumps(figures | {"changes": len(small["cold"])}))


if __name__ == "__main__":
    main()
