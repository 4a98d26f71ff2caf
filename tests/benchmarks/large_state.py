#!/usr/bin/env python3
# bench: large_state - a trial of 2 GB grows onto a second host over a link of 1 Gbit/s
# builds: tuner bench_resize_trial
"""Two hosts (network namespaces) with an agent of one slot each; what either sends is shaped by `tbf`.
A trial that carries 2 GB of state trains on the first and is then given a slot on the second. Counted
is the hand-over, as the trial's replicas measured it, beside what the link needs for so many bytes at
the least; retries are generations beyond the one that joins."""
import json
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))
from hosts import HostsTest, run_inside  # noqa: E402

run_inside(__file__)  # before --smoke is taken from the arguments
from bench_run import BIN, PATIENT_AGENT, PATIENT_SERVICE, usual_or_smoke  # noqa: E402
from harness import wait_for  # noqa: E402

STATE_MB = usual_or_smoke(2000, 200)
LINK_MBIT = 1000
EPOCH = 1 << 21  # samples: for minutes, so that no checkpoint falls into the measurement
PATIENCE_S = 600
# As `tuner show` has it: replicas, pause, forming, state.
REGROUP = re.compile(r"1 -> 2 +([\d.]+) ms +[\d.]+ ms +([\d.]+) ms")


class LargeState(HostsTest):
    def runTest(self):
        one, two = self.make_network(2, rate_mbit=LINK_MBIT)
        self.logs = self.dir / "logs"
        self.logs.mkdir()
        self.serve_on(one, options=PATIENT_SERVICE)
        self.agent_on(one, options=PATIENT_AGENT, env={"ESPALIER_THREADS": "1"})
        self.client("submit", self.write("study.json", {
            "name": "e2e", "metric": {"name": "v", "direction": "minimize"}, "sampler": "random", "trials": 1,
            "max_restarts": 0, "slots": {"min": 1, "max": 2},
            "search_space": {"lr": {"_type": "uniform", "_value": [0.01, 0.02]}},
            "command": [os.path.join(BIN, "bench_resize_trial"), str(self.logs), "convnet", str(EPOCH), str(STATE_MB)]}))
        wait_for(self.trial, "a trial", PATIENCE_S)
        self.client("pin", "e2e", "0", "--slots", "1")
        before = wait_for(lambda: self.generation_of(1), "steps of one replica", PATIENCE_S)
        self.agent_on(two, options=PATIENT_AGENT, env={"ESPALIER_THREADS": "1"})
        wait_for(lambda: two.name in self.client("pool").stdout, "the second host in the pool", PATIENCE_S)
        self.client("pin", "e2e", "0", "--slots", "2")
        try:
            after = wait_for(lambda: self.generation_of(2), "steps of two replicas", PATIENCE_S)
        except AssertionError as late:
            print(late, file=sys.stderr)
            self.figures = {"joined": False, "state_gb": STATE_MB / 1000}
            return
        shown = wait_for(lambda: REGROUP.search(self.client("show", "e2e", "--trial", "0").stdout),
                         "the record of the regroup", PATIENCE_S)
        paused_s, state_s = (float(ms) / 1000 for ms in shown.groups())
        least_s = 8 * STATE_MB / LINK_MBIT
        self.figures = {"joined": True, "retries": after - before - 1, "over_link_limit": round(state_s / least_s, 3),
                        "state_s": round(state_s, 2), "paused_s": round(paused_s, 2), "state_gb": STATE_MB / 1000}

    def generation_of(self, replicas):
        """The generation in which so many replicas have all made a step, or None."""
        made = {}
        for log in self.logs.iterdir():
            for line in log.read_text().splitlines():
                words = line.split()
                if len(words) == 5 and int(words[3]) == replicas:
                    made.setdefault(int(words[1]), set()).add(log.name)
        return max((g for g, by in made.items() if len(by) == replicas), default=None)


def main():
    run = LargeState()
    run.setUp()
    try:
        run.runTest()
    finally:
        run.tearDown()
    print(json.dumps(run.figures))


if __name__ == "__main__":
    main()
