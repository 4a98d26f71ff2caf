#!/usr/bin/env python3
# bench: two_hosts - a trial on two hosts (network namespaces, 1 ms apart): growing, a host that cannot be reached, lost hosts, drains
# builds: tuner bench_resize_trial delay_relay
"""The service has a host of its own, two agents have one slot each. All that is counted comes from the steps that replicas wrote
down and from which processes are there, not from what the service says of itself.

grow_pause_*: from the last step of one replica to the first of two. killed_while_growing: replicas that were gone after a
change of size. one_way_killed_trained: replicas with training behind them that are killed while the other host cannot be reached
(connections to it, or from it, refused or swallowed). lost_nodes: agent and replica killed, their host cut off, its disk gone;
lost_progress_s: age of the state that the other host went on from. drain_lost_steps: steps made twice while `tuner drain` moves the
trial to and fro."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import hosts

hosts.run_inside(__file__)

from bench_run import BIN, PATIENT_AGENT, TUNER, quantile, usual_or_smoke
from elastic_pool import STUDY, Pool
from harness import replicas_of

DELAY_MS = 1
GROWS, LOSSES, DRAINS, PATIENCE_S = usual_or_smoke((20, 10, 6, 60), (1, 1, 1, 60))
KILL_WAIT_S = usual_or_smoke(30, 3)  # for the service to do what it must not: kill a trained replica
EPOCH_SAMPLES = 1 << 16  # a checkpoint at the end of each: some tenths of a second
LEASE_S = usual_or_smoke(2, 20)  # of nodes: a busy machine may keep one from its word
PROGRAM = "bench_resize_trial"


class HostsPool(Pool):
    """As Pool, with the service on the third host and an agent with one slot on each of the others."""

    def __init__(self, folder):
        self.folder = folder
        study = {"command": [os.path.join(BIN, PROGRAM), "LOGS", "small", str(EPOCH_SAMPLES)], "max_restarts": 1000,
                 "slots": {"min": 1, "max": 2}}
        super().__init__(folder, study, slots=1)

    def start(self, folder, slots, agent_flags, environment):
        self.network = hosts.Network(3, folder, delay_ms=DELAY_MS)
        self.nodes, self.home = self.network.hosts[:2], self.network.hosts[2]
        self.grpc = f"{self.home.ip4}:{hosts.PORT}"
        self.token = folder / "token"
        self.token.write_text("0123456789abcdef0123456789abcdef\n")
        self.token.chmod(0o600)
        self.known = set()  # pids of all replicas seen
        self.service = self.on(self.home, "serve", "--grpc", self.grpc, "--db", folder / "db", "--lease", LEASE_S,
                               "--plaintext")
        self.agents = [self.start_agent(node) for node in self.nodes]

    def on(self, host, *arguments):
        return subprocess.Popen([*host.prefix(), TUNER, *map(str, arguments), "--token-file", str(self.token)],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env=os.environ | host.environment() | {"ESPALIER_THREADS": "1"})

    def start_agent(self, host):
        return self.on(host, "agent", "--join", self.grpc, "--slots", 1, "--name", host.name, "--dir",
                       host.folder / "agent", *PATIENT_AGENT)

    def tuner(self, verb, *arguments):
        return subprocess.run([*self.home.prefix(), TUNER, verb, *map(str, arguments), "--service", self.grpc,
                               "--token-file", str(self.token)], capture_output=True, text=True)

    def replicas(self):
        """By node; remembers them."""
        found = [replicas_of(agent.pid, PROGRAM) for agent in self.agents]
        self.known.update(pid for pids in found for pid in pids)
        return found

    def gone(self):
        return {pid for pid in self.known if not alive(pid)}

    def trains(self, within_s=PATIENCE_S, than=None):
        """Whether there are new steps soon."""
        last = self.last() if than is None else than
        return self.soon(lambda: self.last() and (not last or self.last().time > last.time), within_s)

    def soon(self, condition, within_s=PATIENCE_S):
        try:
            return self.wait(condition, within_s)
        except AssertionError:
            return None

    def home_of(self, pid):
        return next((i for i, pids in enumerate(self.replicas()) if pid in pids), None)

    def lone(self):
        """The pid of the one replica that trains, and its node; None: there is no such replica now."""
        last, pid = max(((s[-1], pid) for pid, s in self.steps().items() if s), default=(None, None))
        if last is None or last.replicas != 1:
            return None
        node = self.home_of(pid)
        return None if node is None else (pid, node)

    def alone(self):
        return self.wait(self.lone)

    def close(self):
        for process in (*self.agents, self.service):
            process.kill()
            process.wait()
        self.network.remove()


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@contextlib.contextmanager
def lone_trial():
    """A pool with a trial that trains on one slot."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        pool = HostsPool(pathlib.Path(folder))
        try:
            pool.wait(lambda: pool.tuner("pin", STUDY, 0, "--slots", 1).returncode == 0)
            pool.alone()
            yield pool
        finally:
            pool.close()


def growing():
    still, requests, killed = [], [], 0
    with lone_trial() as pool:
        pool.replicas()
        for _ in range(GROWS):
            grown = pool.resize(2)
            pool.replicas()
            pool.resize(1)
            pool.replicas()
            killed += len(pool.gone())
            pool.known -= pool.gone()
            still.append(1000 * grown.still_s)
            requests.append(1000 * grown.request_s)
            print(f"grown: {still[-1]:.1f} ms without a step, {requests[-1]:.0f} ms after the request", flush=True)
    return {"grow_pause_p50_ms": round(quantile(still, 0.5), 1), "grow_pause_worst_ms": round(max(still), 1),
            "grow_request_p50_ms": round(quantile(requests, 0.5)), "grows": len(still), "killed_while_growing": killed}


def one_way():
    """The other host cannot be reached from the one that trains, or the other way round."""
    faults = usual_or_smoke([(way, fault) for way in ("towards", "from") for fault in ("refuse", "shut")],
                            [("towards", "refuse")])
    killed = stopped = 0
    for way, fault in faults:
        with lone_trial() as pool:
            pid, node = pool.alone()
            trains, other = pool.nodes[node], pool.nodes[1 - node]
            shut, out = (other, trains) if way == "towards" else (trains, other)
            getattr(shut, fault)(out)
            pool.tuner("pin", STUDY, 0, "--slots", 2)
            pool.soon(lambda: not alive(pid), KILL_WAIT_S)
            killed += not alive(pid)
            # With its size back at one, it goes on.
            pool.tuner("pin", STUDY, 0, "--slots", 1)
            stopped += not pool.trains()
            print(f"{fault} {way} the host that trains: trained replica {'lives' if alive(pid) else 'killed'}", flush=True)
    return {"one_way_faults": len(faults), "one_way_killed_trained": killed, "one_way_stopped": stopped}


def lose(pool):
    """Kills the node that the trial trains on; the age of the state that the other goes on from, None: it does not."""
    pid, node = pool.alone()
    begun = pool.steps()[pid][0].time
    # At least three checkpoints, and time for their second copies.
    pool.wait(lambda: pool.steps()[pid][-1].time > begun + 5)
    host, agent = pool.nodes[node], pool.agents[node]
    host.cut(*(h for h in pool.network.hosts if h is not host))
    agent.kill()
    agent.wait()
    last = max(pool.wait(lambda: not alive(pid) and pool.steps()[pid]))
    first = pool.soon(lambda: min((s[0] for p, s in pool.steps().items() if s and s[0].time > last.time), default=None))
    shutil.rmtree(host.folder / "agent", ignore_errors=True)
    host.mend()
    pool.agents[node] = pool.start_agent(host)
    if first is None or first.step <= 1:
        return None
    made = max((s.time for mine in pool.steps().values() for s in mine if s.step < first.step and s.time <= last.time),
               default=None)
    return None if made is None else last.time - made


def losses():
    lost, intervals, nodes = [], [], 0
    while nodes < LOSSES:
        with lone_trial() as pool:
            while nodes < LOSSES:
                nodes += 1
                progress = lose(pool)
                print("a lost node: " + ("not resumed" if progress is None else f"{progress:.2f} s of work lost"), flush=True)
                intervals += epochs_s(pool.steps())
                if progress is None:
                    break
                lost.append(progress)
    return {"lost_nodes": nodes, "resumed_elsewhere": len(lost),
            "lost_progress_s_p99": round(quantile(lost, 0.99), 2) if lost else None,
            "checkpoint_interval_s": round(quantile(intervals, 0.5), 2) if intervals else None}


def epochs_s(steps, samples=EPOCH_SAMPLES, batch=256):
    """How long epochs took that one process made alone: a checkpoint is written at the end of each."""
    an_epoch = samples // batch
    return [b.time - a.time for mine in steps.values() for a, b in zip(mine, mine[an_epoch:]) if a.step % an_epoch == 0]


def drains():
    moved = 0
    with lone_trial() as pool:
        for _ in range(DRAINS):
            _, node = pool.alone()
            pool.tuner("drain", pool.nodes[node].name)
            moved += bool(pool.soon(lambda: (found := pool.lone()) and found[1] != node))
            pool.tuner("drain", pool.nodes[node].name, "--undo")
            pool.trains(than=pool.last())
        generations = {}
        for mine in pool.steps().values():
            for step in mine:
                generations.setdefault(step.step, set()).add(step.generation)
    made_twice = sum(len(g) > 1 for g in generations.values())
    return {"drains": DRAINS, "drained": moved, "drain_lost_steps": made_twice}


PARTS = {part.__name__: part for part in (growing, one_way, losses, drains)}


def main():
    """All parts, or those named."""
    figures = {}
    for name in sys.argv[1:] or PARTS:
        figures |= PARTS[name]()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
