#!/usr/bin/env python3
# bench: engine_kubernetes - nodes from a real Kubernetes: how soon they join, what is left of them after faults, and what rights are used
# builds: tuner
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "e2e" / "kubernetes")]
import hosts

if not os.environ.get(hosts.INSIDE) and "--smoke" not in sys.argv:  # a brief run takes what is there
    subprocess.run([HERE.parents[1] / "scripts" / "setup-kubernetes.sh"], check=True, stdout=sys.stderr)
hosts.run_inside(__file__)

import json
import random
import time

from bench_run import quantile, usual_or_smoke
from harness import wait_for
from kubernetes_test import NODES, Kubernetes

TRIALS = int(sys.argv[1]) if len(sys.argv) > 1 else usual_or_smoke(50, 1)


class Bench(Kubernetes):
    """Uses what the test of the same engine is made of."""

    def runTest(self):
        pass

    def joined_after_s(self, count):
        """Seconds from a request to its node in the pool, so many times: each time one pod is deleted."""
        times = []
        for _ in range(count):
            requests = lambda: self.output(self.service).count("event=machine_requested")
            before = requests()
            self.cluster.delete_pod(self.names("Running")[0])
            wait_for(lambda: requests() > before, "a request")
            begin = time.monotonic()
            wait_for(lambda: self.exactly(NODES), "the node")
            times.append(time.monotonic() - begin)
        return times

    def fault(self, chance):
        """One of the things that happen, while nodes come: the loss of the API server, of the service, of both, of a pod
        with and without notice, of a machine."""
        kind = chance.choice(("api server", "service", "both", "pod", "pod at once", "machine"))
        pod = chance.choice(self.cluster.pods("Running"))
        machine = pod["spec"]["nodeName"]
        if kind == "machine":
            self.cluster.lose_node(machine)
            wait_for(lambda: len(self.nodes()) < NODES, "the pool to notice")
            self.cluster.start_kubelet(machine)
        else:  # so that another one is requested
            self.cluster.delete_pod(pod["metadata"]["name"], **({"gracePeriodSeconds": 0} if kind == "pod at once" else {}))
        if kind in ("api server", "both"):
            time.sleep(chance.random())
            self.cluster.kill_api_server()
        if kind in ("service", "both"):
            time.sleep(chance.random())
            self.service.kill()
            self.service.wait()
        if kind in ("api server", "both"):
            self.cluster.start_api_server()
        if kind in ("service", "both"):
            self.free_lease()
            self.service = self.serve_kubernetes()
        return kind

    def converged(self, number, kind):
        try:
            wait_for(lambda: self.exactly(NODES), "exactly what is wanted", patience_s=180)
            return 1
        except AssertionError as failure:
            pods = [(pod["metadata"]["name"], pod["spec"].get("nodeName"), pod["status"]) for pod in self.cluster.pods()]
            print(f"fault {number} ({kind}): {failure}\npods: {pods}\nnodes: {self.nodes()}\n"
                  f"{self.output(self.service)[-3000:]}", file=sys.stderr)
            return 0


def main():
    chance = random.Random(1)
    Bench.setUpClass()
    bench = Bench()
    bench.setUp()
    figures = {"api_server": bench.cluster.kind}
    try:
        bench.service = bench.serve_kubernetes()
        bench.submit(steps=1_000_000, trials=NODES)
        wait_for(lambda: bench.exactly(NODES), "all nodes")
        figures["request_to_joined_p50_s"] = round(quantile(bench.joined_after_s(usual_or_smoke(10, 1)), 0.5), 2)
        figures["trials"], figures["converged"] = TRIALS, 0
        for number in range(TRIALS):
            figures["converged"] += bench.converged(number, bench.fault(chance))
        bench.service.terminate()
        bench.service.wait()
        figures["leaked"] = len(bench.names())
        figures["forbidden_used"] = len(bench.forbidden_used())
    finally:
        bench.tearDown()
        Bench.doClassCleanups()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
