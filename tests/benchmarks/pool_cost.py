#!/usr/bin/env python3
# bench: pool_cost - the same study on a fixed pool and on one that utility_price sizes with spot nodes, side by side
# builds: tuner
"""Twelve trials whose own early stopping ends them after an eighth to all of the longest one's steps, in two pools at the
same time, each with a service, a command engine and machines of its own, which are processes here. The fixed pool has
eight nodes of one slot before the study begins, and until it has ended. The other one starts with none; it may have two
such nodes at the same price and eight spot nodes at three tenths of it, and a spot node that trains is taken away every
minute, by SIGUSR1 with a notice. Node-hours are those of machines that live, looked at ten times a second: in the sized
pool until the last one is given back, which is after the study's end. A step is a sleep, so that the pools do not take
processor time from each other; whatever else runs delays both."""
import contextlib
import json
import pathlib
import random
import signal
import sys
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from bench_run import SMOKE, usual_or_smoke
from harness import ROOT, TunerTest, kill, wait_for

SLOTS = 8
STEP_S = usual_or_smoke(2, 0.2)
LONGEST = usual_or_smoke(256, 24)  # steps
STEPS = [LONGEST // share for share in (1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 8)]
NOTICE_S = 8
LEASE_S = usual_or_smoke(5, 30)  # a busy machine may keep a node from its word
PREEMPT_EVERY_S = usual_or_smoke(60, 3)
PREEMPTIONS = usual_or_smoke(6, 1)
TEMPLATES = [{"name": "on-demand", "slots": 1, "price_per_hour": 1, "start_s": 2, "max_nodes": 2},
             {"name": "spot", "slots": 1, "price_per_hour": 0.3, "start_s": 2, "max_nodes": SLOTS, "spot": True}]
PRICES = {"on-demand": 1, "spot": 0.3, "": 1}
TRIAL = """#!/bin/bash
state={log}/$ESPALIER_TRIAL_NUMBER
all=({steps})
step=$(cat $state 2>/dev/null || echo 0)
while [ $step -lt ${{all[$ESPALIER_TRIAL_NUMBER]}} ]; do
  sleep {pause}
  step=$((step + 1))
  tuner tell --step $step --value 0.$step || exit 1
  echo $step > $state.new && mv $state.new $state
  echo $step >> $state.all
done
"""


class Pool(TunerTest):
    """A service, its engine's machines, and how long these have lived."""

    def runTest(self):
        pass

    def setUp(self):
        super().setUp()
        self.machines = self.dir / "machines"
        self.steps = self.dir / "steps"
        self.steps.mkdir()
        self.lived_s = {}  # by template
        self.taken = []    # pids of spot machines that were told that they go
        self.over = threading.Event()

    def tearDown(self):
        self.over.set()
        for process in self.processes:  # the service first, which would start others
            process.kill()
            process.wait()
        for _, pid in self.living():
            kill(pid)
        super().tearDown()

    def open(self, *options):
        self.serve(self.dir / "pool.db", options=[
            "--lease", LEASE_S, "--engine", "command", "--node-dir", self.dir / "nodes", "--engine-option",
            f"program={ROOT}/examples/command_engine/local_machines.py", "--engine-option", f"program={self.machines}",
            "--engine-option", f"notice_s={NOTICE_S}", "--pool-size", "utility_price", *options])
        self.clock = threading.Thread(target=self.count, daemon=True)
        self.clock.start()

    def living(self):
        """(template, pid) of each machine: its file is named by a key that ends with its node's name and a number."""
        for file in self.machines.glob("espalier.*"):
            with contextlib.suppress(OSError, ValueError):
                pid, started = file.read_text().split()
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                if fields[0] != "Z" and fields[19] == started:
                    yield file.name.rsplit(".", 2)[1].removeprefix("pool-").rpartition("-")[0], int(pid)

    def count(self):
        before = time.monotonic()
        while not self.over.wait(0.1):
            now = time.monotonic()
            for template, _ in self.living():
                self.lived_s[template] = self.lived_s.get(template, 0) + now - before
            before = now

    def joined(self):
        with urllib.request.urlopen(f"http://{self.http}/api/pool") as answer:
            return [node for node in json.load(answer)["nodes"] if node["connected"]]

    def preempt(self, chance):
        """Takes a spot machine away whose node trains, if there is one."""
        training = {node["name"] for node in self.joined() if node["holders"] and not node["draining"]}
        victims = [pid for template, pid in self.living() if template == "spot" and pid not in self.taken
                   and self.node_of(pid) in training]
        if victims:
            self.taken.append(chance.choice(sorted(victims)))
            kill(self.taken[-1], signal.SIGUSR1)

    @staticmethod
    def node_of(pid):
        """None where it has ended, or has not begun."""
        with contextlib.suppress(OSError, ValueError):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            return words[words.index("--name") + 1]

    def submit(self):
        script = self.write("trial.sh", TRIAL.format(log=self.steps, steps=" ".join(map(str, STEPS)), pause=STEP_S), 0o755)
        self.run_tuner("submit", self.study([script], trials=len(STEPS), max_restarts=0), "--service", self.grpc)

    def ended_after_s(self):
        study = self.export("--service", self.grpc)["study"]
        return study["ended_at"] - study["created_at"] if study["state"] == "STUDY_COMPLETE" else None

    def figures(self):
        record = self.export("--service", self.grpc)
        states = [trial["state"] for trial in record["trials"]]
        assert states == ["TRIAL_COMPLETE"] * len(STEPS), (states, [trial["reason"] for trial in record["trials"]])
        done = sum(len((self.steps / f"{t['number']}.all").read_text().split()) for t in record["trials"])
        hours = sum(self.lived_s.values()) / 3600
        paid = sum(lived / 3600 * PRICES[template] for template, lived in self.lived_s.items())
        return {"time_s": round(self.ended_after_s(), 1), "node_hours": round(hours, 4), "cost": round(paid, 4),
                "lost_steps": done - sum(STEPS),
                "recorded": round(sum(payment["cost"] for payment in record["study"]["payments"]), 4),
                "recorded_spot": round(sum(payment["cost"] for payment in record["study"]["payments"]
                                           if payment["spot"]), 4)}


def main():
    chance = random.Random(1)
    fixed, sized = Pool(), Pool()
    with contextlib.ExitStack() as stack:
        for pool in (fixed, sized):
            pool.setUp()
            stack.callback(pool.tearDown)
        fixed.open("--min-nodes", SLOTS, "--max-nodes", SLOTS, "--node-start", 2)
        wait_for(lambda: len(fixed.joined()) == SLOTS, "the fixed pool's nodes")
        sized.open("--node-templates", sized.write("templates.json", TEMPLATES))
        fixed.lived_s.clear()
        fixed.submit()
        sized.submit()
        next_preemption = time.monotonic() + PREEMPT_EVERY_S
        ends = {}
        while len(ends) < 2:
            time.sleep(usual_or_smoke(0.5, 0.2))
            for name, pool in (("fixed", fixed), ("sized", sized)):
                if name not in ends and (end := pool.ended_after_s()) is not None:
                    ends[name] = end
                    if pool is fixed:
                        pool.over.set()
            if time.monotonic() >= next_preemption and len(sized.taken) < PREEMPTIONS and "sized" not in ends:
                sized.preempt(chance)
                next_preemption += PREEMPT_EVERY_S
        if not SMOKE:
            wait_for(lambda: not list(sized.living()), "the machines to be given back")
        sized.over.set()
        of_fixed, of_sized = fixed.figures(), sized.figures()
        print(f"fixed {of_fixed}\nsized {of_sized}", file=sys.stderr)
        for decision in sized.export("--service", sized.grpc)["decisions"]:
            if decision["kind"] == "pool":
                print(decision["reason"], file=sys.stderr)
        print(json.dumps({
            "node_hours_ratio": round(of_sized["node_hours"] / of_fixed["node_hours"], 3),
            "time_ratio": round(of_sized["time_s"] / of_fixed["time_s"], 3),
            "cost_ratio": round(of_sized["cost"] / of_fixed["cost"], 3),
            "preempted": len(sized.taken), "lost_steps": of_sized["lost_steps"],
            "fixed": of_fixed, "sized": of_sized}))


if __name__ == "__main__":
    main()
