#!/usr/bin/env python3
# bench: engine_ray - nodes on a real Ray: how soon work starts on one and the pool grows, how soon a lost one is noticed, beside Ray's own
# builds: tuner
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
READY = "ESPALIER_BENCH_RAY"
if not os.environ.get(READY):  # goes on with the Python that has Ray
    ray = subprocess.run([ROOT / "scripts/setup-ray.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    os.environ |= {READY: "1", "PYTHONPATH": os.pathsep.join((str(ROOT / "python"), str(pathlib.Path(ray) / "site")))}
    os.execv(ROOT / ".deps/venv/bin/python3", ["python3", __file__, *sys.argv[1:]])
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tests/python/ray")]
import cluster

cluster.prepare(__file__)

import json
import signal
import time

import ray
from bench_run import quantile, usual_or_smoke
from harness import kill, processes, wait_for
from ray_case import NODES
from ray_test import Ray

ROUNDS = usual_or_smoke(5, 1)
LOSSES = usual_or_smoke(3, 1)
IDLE_S = usual_or_smoke(6, 0)  # a pool looks at its size every 5 s, and at once after a while without studies
CPUS = 2  # that each node asks Ray for: all of a machine
# Tells when it has begun, and goes on until it is told to end.
WORK = 'date +%s.%N > "$1.begins" && mv "$1.begins" "$1.begun"; until [ -e "$2" ]; do sleep 0.1; done'


@ray.remote(num_cpus=CPUS)
class Plain:
    """What Ray's own users write: an actor that runs the program."""

    def run(self, *words):
        self.program = subprocess.Popen(words)

    def wait(self):
        return self.program.wait()


class Bench(Ray):
    """Uses what the test of the same engine is made of."""

    def runTest(self):
        pass

    def setUp(self):
        super().setUp()
        self.count = 0
        self.end = None  # file upon which our programs end
        self.script = self.write("work.sh", WORK)

    def begun_after_s(self, since, name):
        """Seconds from a moment to the program's first line."""
        mark = self.dir / f"{name}.begun"
        wait_for(mark.exists, f"{name} to begin")
        return float(mark.read_text()) - since

    def next_name(self, kind):
        self.count += 1
        return f"{kind}-{self.count}"

    # ---- Ray's own

    def ray_starts_s(self):
        """From a driver's call to the first line of the program, for an actor where there is none and for one more."""
        times, actors, end = [], [], self.dir / self.next_name("ray-end")
        for _ in range(NODES):
            mark = self.next_name("ray")
            since = time.time()
            actor = Plain.remote()
            actor.run.remote("sh", str(self.script), str(self.dir / mark), str(end))
            times.append(self.begun_after_s(since, mark))
            actors.append(actor)
        end.touch()
        ray.get([actor.wait.remote() for actor in actors])
        for actor in actors:
            ray.kill(actor)
        return times

    # ---- ours

    def submit_work(self):
        """A study that fills one node. Returns its name, by which its program's mark goes, and when it was asked for."""
        name = self.next_name("study")
        command = ["sh", self.script, str(self.dir / name), str(self.end)]
        study = {"name": name, "command": command, "metric": False, "sampler": "random", "trials": 1,
                 "slots": {"min": 1, "max": 1}}
        since = time.time()
        self.client.submit(self.write(f"{name}.json", json.dumps(study)))
        return name, since

    def our_times_s(self, service):
        """Of an idle pool: from a study to its program's first line. Then of one more node: from the request to its slots
        in the pool, and from the study that needs it to the first line."""
        time.sleep(IDLE_S)
        self.end = self.dir / self.next_name("end")
        name, since = self.submit_work()
        start = self.begun_after_s(since, name)
        requests = lambda: self.output(service).count("event=machine_requested")
        before = requests()
        name, since = self.submit_work()
        wait_for(lambda: requests() > before, "a request")
        requested = time.monotonic()
        wait_for(lambda: len(self.connected()) == NODES, "one more node")
        grow = time.monotonic() - requested
        return start, grow, self.begun_after_s(since, name)

    def empty_pool(self):
        self.end.touch()
        wait_for(lambda: not self.actors() and not self.agents() and not self.connected(), "the pool to be empty")

    def loss_noticed_s(self):
        """Seconds until the pool, and until Ray, says that a machine is gone. Its actor and agent fall silent, as on a
        machine that has lost its power; Ray's own process is killed, which is easier to notice."""
        machine = self.cluster.machines[0]
        raylet = machine.all_processes["raylet"][0].process.pid
        parents = {pid: parent for pid, parent, _ in processes()}
        def is_of(pid):
            while pid in parents and pid != raylet:
                pid = parents[pid]
            return pid == raylet
        agent, = (pid for pid in self.agents() if is_of(pid))
        silent = [agent, parents[agent]]  # the actor first to die would take its agent along
        alive = sum(node["Alive"] for node in ray.nodes())
        begin = time.monotonic()
        for pid in silent:
            kill(pid, signal.SIGSTOP)
        self.cluster.kill(machine)
        noticed = {}
        def both():
            if len(self.connected()) < NODES:
                noticed.setdefault("ours", time.monotonic() - begin)
            if sum(node["Alive"] for node in ray.nodes()) < alive:
                noticed.setdefault("ray", time.monotonic() - begin)
            return len(noticed) == 2
        wait_for(both, "pool and Ray to notice")
        for pid in silent:
            kill(pid)
        return noticed


def median(values):
    return round(quantile(values, 0.5), 2)


def main():
    Bench.setUpClass()
    bench = Bench()
    bench.setUp()
    try:
        service = bench.serve_ray("--slots", 1)
        plain, ours = [], []
        for number in range(ROUNDS):
            if number:
                bench.empty_pool()
            plain.append(bench.ray_starts_s())
            ours.append(bench.our_times_s(service))
        start, grow, from_study = (median(times) for times in zip(*ours))
        ray_start, ray_grow = (median(times) for times in zip(*plain))
        figures = {"rounds": ROUNDS, "start_s": start, "ray_start_s": ray_start, "start_ratio": round(start / ray_start, 2),
                   "grow_p50_s": grow, "grow_from_study_p50_s": from_study, "ray_grow_p50_s": ray_grow}
        noticed = []
        for number in range(LOSSES):
            if number:
                bench.cluster.add()
            wait_for(bench.all_nodes, "all nodes")
            noticed.append(bench.loss_noticed_s())
        figures["node_loss_noticed_s"] = round(max(each["ours"] for each in noticed), 2)
        figures["ray_node_loss_noticed_s"] = round(max(each["ray"] for each in noticed), 2)
        service.terminate()
        service.wait()
        figures["leaked"] = len(bench.actors()) + len(bench.agents())
    finally:
        bench.tearDown()
        Bench.doClassCleanups()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
