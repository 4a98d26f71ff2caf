#!/usr/bin/env python3
# bench: resize - pause of training at in-place resizes 1->2->4->1 and at the loss of a replica, beside stopping and resuming the same trial from its checkpoint
# builds: tuner bench_resize_trial
"""A real service and agent, `tuner pin` to ask for sizes. The pause is what a surviving replica itself
saw: the time between its last step of the old group and its first of the new one, less a usual step.
Stop-and-resume is what tools without in-place resizing do at each resize: new processes."""
import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

from bench_run import BIN, TUNER, free_port, quantile

CYCLES, LOSSES, RESTARTS = 15, 8, 3


class Pool:
    def __init__(self, folder):
        self.logs = folder / "logs"
        self.logs.mkdir()
        self.read = {}   # file: bytes read so far
        self.seen = {}   # pid: its steps so far
        self.grpc = f"127.0.0.1:{free_port()}"
        self.service = subprocess.Popen([TUNER, "serve", "--grpc", self.grpc, "--db", str(folder / "db")],
                                        stderr=subprocess.DEVNULL)
        self.agent = subprocess.Popen([TUNER, "agent", "--join", self.grpc, "--slots", "4", "--name", "n",
                                       "--dir", str(folder / "agent")], stderr=subprocess.DEVNULL)
        study = folder / "study.json"
        study.write_text(json.dumps({
            "name": "resize", "command": [os.path.join(BIN, "bench_resize_trial"), str(self.logs)],
            "metric": {"name": "v", "direction": "minimize"}, "sampler": "random", "trials": 1,
            "max_restarts": 0, "search_space": {"lr": {"_type": "uniform", "_value": [0.01, 0.02]}}}))
        self.wait(lambda: self.tuner("submit", str(study)).returncode == 0)

    def tuner(self, verb, *arguments):
        return subprocess.run([TUNER, verb, *map(str, arguments), "--service", self.grpc],
                              capture_output=True, text=True)

    def wait(self, condition, patience_s=120):
        end = time.monotonic() + patience_s
        while not (value := condition()):
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.02)
        return value

    def steps(self):
        """{pid: [(time, generation, rank, replicas, step)]}; reads what is new, whole lines only."""
        for path in self.logs.iterdir():
            with open(path, "rb") as file:
                file.seek(self.read.get(path, 0))
                new = file.read()
            new = new[:new.rfind(b"\n") + 1]
            self.read[path] = self.read.get(path, 0) + len(new)
            mine = self.seen.setdefault(int(path.name), [])
            mine += [tuple(map(float, line.split())) for line in new.splitlines()]
        return self.seen

    def last(self):
        """The newest step of anybody, with its pid."""
        return max(((s[-1], pid) for pid, s in self.steps().items() if s), default=None)

    def resize(self, slots):
        self.tuner("pin", "resize", 0, "--slots", slots)
        self.wait(lambda: (l := self.last()) and l[0][3] == slots)
        time.sleep(0.3)  # some usual steps in between

    def close(self):
        self.agent.send_signal(signal.SIGTERM)
        self.agent.wait()
        self.service.kill()
        self.service.wait()


def pauses(steps):
    """Of each process that outlived a change of generation: the gap there, less its usual step."""
    found = []
    for mine in steps.values():
        gaps = [b[0] - a[0] for a, b in zip(mine, mine[1:]) if a[1] == b[1]]
        usual = statistics.median(gaps) if gaps else 0
        found += [(b[0] - a[0] - usual, int(a[3]), int(b[3]), b[0]) for a, b in zip(mine, mine[1:]) if a[1] != b[1]]
    return found


def main():
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool(pathlib.Path(folder))
        try:
            pool.wait(lambda: pool.last())
            for cycle in range(CYCLES):
                for slots in (2, 4, 1):
                    pool.resize(slots)
                print(f"cycle {cycle + 1}/{CYCLES}", flush=True)
            planned = [1000 * p[0] for p in pauses(pool.steps())]

            losses = []
            for _ in range(LOSSES):
                pool.resize(2)
                now = pool.last()[0][0]
                members = [(s[-1][2], pid) for pid, s in pool.steps().items() if s and now - s[-1][0] < 0.25]
                victim, survivor = max(members)[1], min(members)[1]
                before = len(pool.steps()[survivor])
                killed = time.clock_gettime(time.CLOCK_MONOTONIC)
                os.kill(victim, signal.SIGKILL)
                pool.wait(lambda: any(s[3] == 1 for s in pool.steps()[survivor][before:]))
                alone = next(s for s in pool.steps()[survivor][before:] if s[3] == 1)
                losses.append(1000 * (alone[0] - killed))
                pool.resize(1)

            restarts = []
            for _ in range(RESTARTS):
                known = set(pool.steps())
                pool.tuner("stop", "resize")
                pool.wait(lambda: json.loads(pool.tuner("export", "resize", "--format", "json").stdout)
                          ["trials"][0]["state"] == "TRIAL_PAUSED")
                left = pool.last()[0][0]
                pool.tuner("resume", "resize")
                pool.wait(lambda: any(s for pid, s in pool.steps().items() if pid not in known))
                new = min(s[0][0] for pid, s in pool.steps().items() if pid not in known and s)
                restarts.append(1000 * (new - left))
        finally:
            pool.close()
    p50 = quantile(planned, 0.5)
    print(json.dumps({
        "p50_ms": round(p50, 1), "p99_ms": round(quantile(planned, 0.99), 1), "resizes": len(planned),
        "loss_p50_ms": round(quantile(losses, 0.5), 1), "loss_worst_ms": round(max(losses), 1),
        "restart_p50_ms": round(quantile(restarts, 0.5), 1),
        "restart_over_resize": round(quantile(restarts, 0.5) / max(p50, 0.1), 1)}))


if __name__ == "__main__":
    main()
