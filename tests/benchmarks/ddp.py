#!/usr/bin/env python3
# bench: ddp - samples a second of two replicas on CPU, beside PyTorch's DistributedDataParallel on the same model, batch and threads
# builds: tuner bench_resize_trial
"""Ours are two replicas of an elastic trial under service and agent, theirs two Python processes over
Gloo with the same torch; one thread a process. In turns, ours first in one pair and last in the next;
the median of the pairs' ratios. Run on at least two free cores."""
import json
import pathlib
import statistics
import subprocess
import time

from bench_run import SMOKE, peers_python, usual_or_smoke
from elastic_pool import in_cpp, start_pool

PAIRS, MEASURED_S, REPLICAS = *usual_or_smoke((5, 6.0), (1, 0.5)), 2
BATCH = {"convnet": 128, "mlp": 128}  # as in workloads.h


def measured(pool):
    """The steps of rank 0 in the present group since its first second, once they have taken long enough."""
    steps = pool.steps().get(pool.members().get(0), [])
    steps = [s for s in steps if s.generation == steps[-1].generation]
    counted = [s for s in steps if s.time >= steps[0].time + 1]
    return counted if counted and counted[-1].time - counted[0].time >= MEASURED_S else None


def ours(workload, program):
    with start_pool(workload, slots=REPLICAS, program=program) as pool:
        pool.pin(REPLICAS)
        time.sleep(1 + MEASURED_S)  # reading the logs meanwhile would take processor time from the replicas
        counted = pool.wait(lambda: measured(pool))
    return BATCH[workload] * (counted[-1].step - counted[0].step) / (counted[-1].time - counted[0].time)


def theirs(workload, _):
    script = pathlib.Path(__file__).parent / "peers" / "ddp.py"
    return float(subprocess.run([peers_python(), script, workload, str(REPLICAS), str(MEASURED_S)],
                                check=True, stdout=subprocess.PIPE, text=True).stdout)


def main(program=in_cpp):
    if SMOKE:
        print(json.dumps({f"{workload}_samples_per_s": round(ours(workload, program)) for workload in BATCH}))
        return
    peers_python()
    ratios, figures = {}, {}
    for workload in BATCH:
        rates = []
        for pair in range(PAIRS):
            sides = [ours, theirs] if pair % 2 == 0 else [theirs, ours]
            rates.append({side.__name__: side(workload, program) for side in sides})
            print(f"{workload}: {rates[-1]['ours']:.0f} samples a second, DDP {rates[-1]['theirs']:.0f}",
                  flush=True)
        ratios[workload] = statistics.median(r["ours"] / r["theirs"] for r in rates)
        figures[f"{workload}_samples_per_s"] = round(statistics.median(r["ours"] for r in rates))
        figures[f"{workload}_ddp_samples_per_s"] = round(statistics.median(r["theirs"] for r in rates))
        figures[f"{workload}_ours_over_ddp"] = round(ratios[workload], 3)
    # The worse of the models counts.
    print(json.dumps({"ours_over_ddp": round(min(ratios.values()), 3)} | figures | {"pairs": PAIRS}))


if __name__ == "__main__":
    main()
