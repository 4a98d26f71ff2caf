#!/usr/bin/env python3
# bench: engine_slurm - nodes from a real Slurm: how soon they join, and what is left of them after faults and preemption
# builds: tuner
import json
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "slurm"))
from bench_run import quantile, usual_or_smoke
from harness import wait_for
from slurm_test import NODES, Slurm

TRIALS = int(sys.argv[1]) if len(sys.argv) > 1 else usual_or_smoke(50, 1)


class Bench(Slurm):
    """Uses what the test of the same engine is made of."""

    def runTest(self):
        pass

    def joined_after_s(self, count):
        """Seconds from a request to its node in the pool, so many times: each time one job is cancelled."""
        times = []
        for _ in range(count):
            requests = lambda: self.output(self.service).count("event=machine_requested")
            before = requests()
            self.cluster.run("scancel", "--batch", "--signal=TERM", self.cluster.jobs("RUNNING")[0][0])
            wait_for(lambda: requests() > before, "a request")
            begin = time.monotonic()
            wait_for(lambda: self.exactly(NODES), "the node")
            times.append(time.monotonic() - begin)
        return times

    def fault(self, chance):
        """One of the things that happen, while nodes come: the loss of the controller, of the service, of a job."""
        kind = chance.choice(("controller", "service", "job", "both"))
        jobs = self.cluster.jobs("RUNNING")
        if jobs:
            self.cluster.run("scancel", "--batch", "--signal=TERM", jobs[0][0])  # so that another one is requested
        if kind in ("controller", "both"):
            wait_for(lambda: len(self.cluster.jobs("RUNNING")) < NODES, "a node to go")
            time.sleep(chance.random())
            self.cluster.kill_controller()
        if kind in ("service", "both"):
            self.service.send_signal(signal.SIGKILL)
            self.service.wait()
        if kind in ("controller", "both"):
            self.cluster.start_controller()
        if kind in ("service", "both"):
            self.service = self.serve_slurm()
        return kind


def main():
    chance = random.Random(1)
    Bench.setUpClass()
    bench = Bench()
    bench.setUp()
    figures = {}
    try:
        # A study that is preempted, from nothing to nothing.
        bench.service = bench.serve_slurm()
        bench.submit(steps=40, trials=6)
        wait_for(lambda: bench.exactly(NODES), "all nodes")
        bench.cluster.preempt(seconds=2)
        wait_for(bench.complete, "the study to end")
        record = bench.export("--service", bench.grpc)
        again = sum(len(bench.taken(t["number"])) - 40 for t in record["trials"])
        wait_for(lambda: not bench.nodes() and not bench.cluster.jobs(), "nothing to be left")
        figures["preempted_lost_steps"] = again
        figures["zero_to_four_to_zero"] = True
        bench.run_tuner("rm", "e2e", "--service", bench.grpc)
        # One that does not end, under faults.
        bench.submit(steps=1_000_000, trials=NODES)
        wait_for(lambda: bench.exactly(NODES), "all nodes")
        figures["request_to_joined_p50_s"] = round(quantile(bench.joined_after_s(usual_or_smoke(10, 1)), 0.5), 2)
        figures["trials"], figures["converged"] = TRIALS, 0
        for number in range(TRIALS):
            kind = bench.fault(chance)
            try:
                wait_for(lambda: bench.exactly(NODES), "exactly what is wanted", patience_s=180)
                figures["converged"] += 1
            except AssertionError as failure:
                print(f"fault {number} ({kind}): {failure}\njobs: {bench.cluster.jobs()}\nnodes: {bench.nodes()}\n"
                      f"trials: {[t['state'] for t in bench.export('--service', bench.grpc)['trials']]}\n"
                      f"{bench.output(bench.service)[-3000:]}", file=sys.stderr)
        bench.service.terminate()
        bench.service.wait()
        figures["leaked"] = len(bench.cluster.jobs("PENDING,CONFIGURING,RUNNING"))
    finally:
        bench.tearDown()
        Bench.doClassCleanups()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
