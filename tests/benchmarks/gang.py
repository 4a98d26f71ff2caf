#!/usr/bin/env python3
# bench: gang - scripts under torchrun, accelerate, DeepSpeed and Lightning as trials: their ranks' models, who is blamed, what kills leave; a restart on more ranks beside torchrun's own
# builds: tuner
"""The scripts are those of tests/e2e/gang, each on 2 and on 4 ranks, of one host and over two (network namespaces).

unlike_parameters: trials whose ranks had unlike parameters or ended with unlike models, or did not end well. failures: ranks
that exit with 3, raise, die of a signal or leave with 0, and ranks and runners that are killed; blamed_right: of those, the
ones whose trial's reason names the rank. kills: by SIGKILL of a rank, its runner, a launcher, what supervises them, an
agent; and prunes, of ranks that heed SIGTERM and that do not. orphans: processes of those trials that were there a second
after the trial had been told ended, and after its study's grace. prune_to_gone_*: from the call until the last process is
gone, of all and of those without torch; torch_ends_ms: what the kernel takes to end four processes with torch. The cheap
kills are of a script without torch that has a loader for each rank.

*_over_torchrun: time from the last step of 2 ranks to the first of 4 by "resize": "restart", over that of torchrun's elastic
restart when a second agent joins."""
import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import typing
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import hosts
from bench_run import ANY_PORT, PATIENT_SERVICE, SMOKE, TUNER, quantile, serve, told_address, torch_python, usual_or_smoke

SCRIPTS = ROOT / "tests/e2e/gang"
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
PEERS = pathlib.Path(__file__).resolve().parent / "peers"
GRACE_S = 1
PATIENCE_S = 240
SETTLED_S = 1  # after a trial's end; what is there then is left
ROUNDS = usual_or_smoke(3, 1)  # of restarts
SLOTS = 4  # in all
OUTSIDE_IP4 = "10.77.0.254"  # of this process, beside the hosts


class Cell(typing.NamedTuple):
    name: str
    launch: str
    script: str
    variables: dict = {}
    program: str = ""  # on the launcher's command line


CELLS = [
    Cell("torchrun_ddp", "torchrun", "ddp.py", program="torch.distributed.run"),
    Cell("torchrun_fsdp2", "torchrun", "fsdp2.py", program="torch.distributed.run"),
    Cell("accelerate_ddp", "accelerate", "accelerate_ddp.py", program="accelerate.commands.launch"),
    Cell("deepspeed_zero1", "deepspeed", "deepspeed_zero.py", {"DS_ACCELERATOR": "cpu"}, "deepspeed.launcher.launch"),
    Cell("lightning_ddp", "ranks", "lightning_ddp.py"),
]
CHEAP = Cell("cheap", "ranks", "loaders.py")
# What happens in each cell, in this order; again and again where there are more trials.
FAULTS = ["exit", "raise", "signal", "early"]
PLAN = ["well", "exit", "kill_rank", "kill_launcher", "prune", "raise", "kill_agent", "prune_deaf", "well", "signal",
        "kill_runner", "kill_supervisor", "early", "kill_launcher", "kill_agent", "well", "prune", "kill_rank", "prune_deaf",
        "well"]
PLAN_BETWEEN = 10  # so much further on two hosts begin than one
CHEAP_PLAN = ["kill_rank", "prune", "kill_supervisor", "kill_runner", "prune_deaf", "kill_agent"]  # a prune also in the briefest run


def options():
    parser = argparse.ArgumentParser(prog="bench.sh gang")
    parser.add_argument("--trials", type=int, default=usual_or_smoke(200, 4), help="of the scripts; default: %(default)s")
    parser.add_argument("--cheap", type=int, metavar="KILLS", default=usual_or_smoke(100, 6),
                        help="of a script without torch; default: %(default)s")
    parser.add_argument("--hosts", type=int, action="append", choices=[1, 2], help="may be repeated; default: first 1, then 2")
    parser.add_argument("--cell", action="append", choices=[cell.name for cell in CELLS], help="may be repeated; default: all")
    parser.add_argument("--no-resize", action="store_true", help="no restarts on more ranks")
    return parser.parse_args()


def launchers_python():
    """The interpreter that has the launchers, made when it is not there."""
    if SMOKE:  # the torch that is there
        return torch_python()
    folder = os.environ.get("ESPALIER_LAUNCHERS") or subprocess.run(
        [ROOT / "scripts/setup-launchers.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    folder = pathlib.Path(folder)
    python = str(folder / "venv/bin/python3")
    environment = torch_python()[1] | {"TORCH_EXTENSIONS_DIR": str(folder / "extensions")}
    # Compiled now, so that no trial waits for it, and none is killed while it holds the folder's lock.
    subprocess.run([python, "-c", "from deepspeed.comm.torch import build_shm_op; build_shm_op()"], check=True,
                   env=environment | {"DS_ACCELERATOR": "cpu"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return python, environment


class Pool:
    """A service and an agent, which is started again when it was killed."""

    nodes = [None]  # hosts that have an agent; None: this one

    def __init__(self, folder, environment):
        self.folder, self.environment, self.headers = folder, environment, {}
        self.service = self.serve()
        self.agents = [None for _ in self.nodes]
        for number in range(len(self.nodes)):
            self.start_agent(number)

    def serve(self):
        service = serve(self.folder / "db", "--http", ANY_PORT)
        self.grpc = told_address(service)
        self.http = told_address(service, "HTTP")
        return service

    def on(self, host, *arguments):
        prefix, environment = ([], {}) if host is None else (host.prefix(), host.environment())
        return subprocess.Popen([*prefix, TUNER, *map(str, arguments)], env=self.environment | environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start_agent(self, number):
        name = f"n{number}"
        self.agents[number] = self.on(self.nodes[number], "agent", "--join", self.grpc, "--http", self.http, "--slots",
                                      SLOTS // len(self.nodes), "--name", name, "--dir", self.folder / name, *self.token())
        self.wait(lambda: any(node["name"] == name and node["connected"] for node in self.call("pool").get("nodes", [])),
                  f"agent {name}")

    def token(self):
        return []

    def kill_agent(self, number):
        self.agents[number].kill()
        self.agents[number].wait()

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(f"http://{self.http}/api/{path}", data, self.headers)) as answer:
            return json.load(answer)

    def submit(self, study):
        try:
            self.call("studies", study)
        except urllib.error.HTTPError as refused:
            sys.exit(f"gang: {refused.read().decode()}")
        return Trial(self, study["name"])

    def wait(self, condition, what, patience_s=PATIENCE_S):
        end = time.monotonic() + patience_s
        while not (value := condition()):
            if time.monotonic() > end:
                raise TimeoutError(f"waited {patience_s} s in vain for {what}")
            time.sleep(0.02)
        return value

    def close(self):
        for process in (*self.agents, self.service):
            process.kill()
            process.wait()


class HostsPool(Pool):
    """As Pool, with two hosts, of which each has an agent and the first one the service. All processes are seen from here."""

    def __init__(self, folder, environment):
        self.network = hosts.Network(2, folder)
        hosts.sh("ip", "address", "add", f"{OUTSIDE_IP4}/24", "dev", "br-eth0")
        self.nodes = self.network.hosts
        self.token_file = folder / "token"
        self.token_file.write_text("0123456789abcdef0123456789abcdef\n")
        self.token_file.chmod(0o600)
        super().__init__(folder, environment)

    def token(self):
        return ["--token-file", self.token_file]

    def serve(self):
        home = self.nodes[0]
        self.headers = {"Authorization": f"Bearer {self.token_file.read_text().strip()}"}
        self.grpc, self.http = f"{home.ip4}:{hosts.PORT}", f"{home.ip4}:{hosts.HTTP_PORT}"
        service = self.on(home, "serve", "--grpc", self.grpc, "--http", self.http, "--db", self.folder / "db", "--plaintext",
                          *PATIENT_SERVICE, *self.token())
        self.wait(self.answers, "the service")
        return service

    def answers(self):
        with contextlib.suppress(urllib.error.URLError):
            return self.call("pool")

    def close(self):
        super().close()
        self.network.remove()


@contextlib.contextmanager
def made_pool(hosts_, folder, environment):
    folder.mkdir()
    pool = (HostsPool if hosts_ == 2 else Pool)(folder, environment)
    try:
        yield pool
    finally:
        pool.close()


def words_of(pid):
    try:
        return (pathlib.Path("/proc") / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


class Trial:
    """The only one of its study."""

    def __init__(self, pool, study):
        self.pool, self.study = pool, study

    def record(self):
        return next(iter(self.pool.call(f"studies/{self.study}")["trials"]), {})

    def ended(self):
        return (record := self.record()).get("state") in ("TRIAL_COMPLETE", "TRIAL_PRUNED", "TRIAL_FAIL") and record

    def cancel(self):
        self.pool.call(f"trials/{self.record()['id']}/cancel", {"state": "pruned", "reason": "by the benchmark"})

    def processes(self):
        """Those that carry its variables, in whatever group or session; no zombies, whose variables are gone."""
        mark, found = f"ESPALIER_STUDY={self.study}".encode(), []
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and mark in pathlib.Path("/proc", name, "environ").read_bytes().split(b"\0"):
                    found.append(int(name))
        return found

    def those(self, what, program=""):
        """Of its processes: its "supervisor", its "runner"s or its "launcher"."""
        option = {"supervisor": "--run-ranks", "runner": "--run-rank"}.get(what)
        found = [(pid, words_of(pid)) for pid in self.processes()]
        if option:
            return [pid for pid, words in found if words[1:2] == [option]]
        return [pid for pid, words in found if words[1:3] == ["-m", program]]


def await_gone(pids):
    """Milliseconds on the monotonic clock when all had ended."""
    poll, waits = select.poll(), {}
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            waits[os.pidfd_open(pid)] = pid
    for descriptor in waits:
        poll.register(descriptor, select.POLLIN)
    end = time.monotonic() + PATIENCE_S
    while waits and time.monotonic() < end:
        for descriptor, _ in poll.poll(1000):
            poll.unregister(descriptor)
            os.close(descriptor)
            del waits[descriptor]
    return time.monotonic()


def torch_ends_ms(python, environment, processes=4):
    """How long so many processes that have imported torch take to be gone by SIGKILL."""
    program = "import torch, torch._dynamo; print(flush=True); input()"
    started = [subprocess.Popen([python, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
               for _ in range(processes)]
    for process in started:
        process.stdout.readline()
    begun = time.monotonic()
    for process in started:
        process.kill()
    return 1000 * (await_gone([process.pid for process in started]) - begun)


class Tally:
    def __init__(self):
        self.trials = self.over_hosts = self.kills = self.orphans = self.unlike = self.failures = self.blamed_right = 0
        self.gone_ms, self.cheap_gone_ms = [], []

    def figures(self):
        gone = self.gone_ms + self.cheap_gone_ms
        p99 = lambda each: round(quantile(each, 0.99)) if each else None
        return {"trials": self.trials, "over_two_hosts": self.over_hosts, "unlike_parameters": self.unlike,
                "kills": self.kills, "orphans": self.orphans,
                "failures": self.failures, "blamed_right": self.blamed_right, "prunes": len(gone),
                "grace_ms": 1000 * GRACE_S, "prune_to_gone_p99_ms": p99(gone),
                "prune_to_gone_worst_ms": round(max(gone)) if gone else None,
                "prune_to_gone_without_torch_p99_ms": p99(self.cheap_gone_ms)}


class Gang:
    def __init__(self, pool, python, tally):
        self.pool, self.python, self.tally = pool, python, tally
        self.random = random.Random(len(pool.nodes))

    def run(self, cell, ranks, event, number):
        notes = self.pool.folder / f"{cell.name}-{ranks}-{number}"
        notes.mkdir()
        rank = self.random.randrange(ranks)
        fault = {"well": "none", "prune_deaf": "deaf"}.get(event, f"{event}:{rank}" if event in FAULTS else "stay")
        trial = self.pool.submit({
            "name": notes.name, "trials": 1, "sampler": "random", "seed": number, "max_restarts": 0, "slots": ranks,
            "slots_per_node": ranks // len(self.pool.nodes), "launch": cell.launch, "env": cell.variables,
            "stop_grace_s": GRACE_S, "exit_timeout_s": 20,
            "search_space": {"lr": {"_type": "uniform", "_value": [0.01, 0.1]}},
            "metric": {"name": "loss", "from_output": "step=(?P<step>[0-9]+) loss=(.*)"},
            "command": [self.python, str(SCRIPTS / cell.script), "--lr", "{lr}", "--notes", str(notes), "--fault", fault]})
        nodes = len(self.pool.nodes)
        self.tally.trials += cell is not CHEAP
        self.tally.over_hosts += cell is not CHEAP and nodes > 1
        said = self.happen(cell, ranks, event, rank, trial, notes)
        print(f"{cell.name} on {ranks}{f' over {nodes} hosts' if nodes > 1 else ''}: {event}{said}", flush=True)

    def happen(self, cell, ranks, event, rank, trial, notes):
        if event == "well":
            return self.compare(trial, ranks, notes)
        if event in FAULTS:
            return self.judge(trial.pool.wait(trial.ended, "its end"), rank)
        stands = [notes / f"stands-{each}" for each in range(ranks)]
        trial.pool.wait(lambda: all(file.exists() for file in stands) or trial.ended(), "its ranks")
        if trial.ended():
            sys.exit(f"gang: {cell.name} on {ranks} ended before {event}: {trial.record()}")
        pids = trial.processes()
        node = self.random.randrange(len(self.pool.nodes))
        begun = time.monotonic()
        self.strike(cell, event, rank, node, trial, notes)
        self.tally.kills += 1
        if event.startswith("prune"):
            gone_ms = 1000 * (await_gone(pids) - begun)
            (self.tally.cheap_gone_ms if cell is CHEAP else self.tally.gone_ms).append(gone_ms)
        if event == "kill_agent":  # which ends no trial, but its node
            trial.cancel()
        record = trial.pool.wait(trial.ended, "its end")
        said = self.judge(record, rank) if event in ("kill_rank", "kill_runner") else f": {record['reason']}"
        # Told as ended at once, and those on the other host may use their grace.
        time.sleep(SETTLED_S + GRACE_S * (event == "kill_agent" and len(trial.pool.nodes) > 1))
        left = {*trial.processes(), *(pid for pid in pids if notes.name in "".join(words_of(pid)))}
        if event == "kill_agent":
            trial.pool.start_agent(node)
        self.tally.orphans += len(left)
        for pid in left:
            said += f"; LEFT {pid} {' '.join(words_of(pid))[:200]}"
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return said + (f"; gone after {gone_ms:.0f} ms" if event.startswith("prune") else "")

    def strike(self, cell, event, rank, node, trial, notes):
        if event.startswith("prune"):
            return trial.cancel()
        if event == "kill_agent":
            return trial.pool.kill_agent(node)
        pid = int((notes / f"pid-{rank}").read_text())
        if event == "kill_runner":
            pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        elif event == "kill_launcher" and cell.program:
            pid = trial.those("launcher", cell.program)[node]
        elif event != "kill_rank":
            pid = trial.those("supervisor")[node]
        return os.kill(pid, signal.SIGKILL)

    def judge(self, record, rank):
        right = record["state"] == "TRIAL_FAIL" and re.search(rf"\brank {rank}\b", record["reason"]) is not None
        self.tally.failures += 1
        self.tally.blamed_right += right
        return f" of rank {rank}: {'' if right else 'WRONG, '}{record['state']} {record['reason']}"

    def compare(self, trial, ranks, notes):
        record = trial.pool.wait(trial.ended, "its end")
        models = [path.read_text() for path in sorted(notes.glob("model-*"))]
        alike = record["state"] == "TRIAL_COMPLETE" and len(models) == ranks and len(set(models)) == 1
        self.tally.unlike += not alike
        return "" if alike else f": UNLIKE, {record['state']} {record['reason']} {models}"


def gangs(gang, given, count):
    """This pool's share of all trials and cheap kills, of which there are `count` shares."""
    cells = [cell for cell in CELLS if cell.name in (given.cell or usual_or_smoke([c.name for c in CELLS], ["torchrun_ddp"]))]
    places = [(cell, ranks) for cell in cells for ranks in usual_or_smoke((2, 4), (2,))]
    first = (len(gang.pool.nodes) - 1) * PLAN_BETWEEN
    for number in range(-(-given.trials // count)):
        turn, place = divmod(number, len(places))
        gang.run(*places[place], PLAN[(first + turn + 7 * place) % len(PLAN)], number)
    for number in range(-(-given.cheap // count)):
        gang.run(CHEAP, (2, 4)[number // len(CHEAP_PLAN) % 2], CHEAP_PLAN[number % len(CHEAP_PLAN)], number)


def restarts(pool, python, launch):
    """Milliseconds from the last step of 2 ranks to the first of 4, of each round."""
    import step_log
    folder = pool.folder / f"resize-{launch}"
    folder.mkdir()
    log = folder / "steps"
    log.touch()
    trial = pool.submit({
        "name": folder.name, "trials": 1, "sampler": "random", "max_restarts": 0, "slots": [2, 4], "resize": "restart",
        "launch": launch, "preload": ["torch"], "stop_grace_s": GRACE_S,
        "search_space": {"lr": {"_type": "uniform", "_value": [0.01, 0.1]}},
        "metric": {"name": "loss", "from_output": "step=(?P<step>[0-9]+) loss=(.*)"},
        "command": [python, str(PROGRAMS / "gang_resumes.py"), "{checkpoint_dir}", str(log)]})
    still = []
    number = pool.wait(trial.record, "the trial")["id"]
    for _ in range(ROUNDS):
        begun = time.monotonic()
        pool.call(f"trials/{number}/pin", {"slots": 2})
        step_log.await_step(log, 2, begun)
        time.sleep(2)  # of training
        begun = time.monotonic()
        pool.call(f"trials/{number}/pin", {"slots": 4})
        still.append(step_log.await_change(log, 4, begun)[0])
        print(f"{launch}: {still[-1]:.0f} ms from 2 ranks to 4", flush=True)
    trial.cancel()
    pool.wait(lambda: not trial.processes(), "its processes to be gone")
    return still


def torchrun_restarts(folder, python, environment):
    """The same by torchrun's agents, of which the second one joins with two ranks."""
    done = subprocess.run([python, PEERS / "torchrun_restart.py", folder, PROGRAMS / "gang_resumes.py", str(ROUNDS)],
                          check=True, stdout=subprocess.PIPE, text=True, env=environment | {"GLOO_SOCKET_IFNAME": "lo"})
    still = json.loads(done.stdout.splitlines()[-1])
    for each in still:
        print(f"torchrun's own: {each:.0f} ms from 2 ranks to 4", flush=True)
    return still


def main():
    given = options()
    python, environment = launchers_python()  # which may have to be downloaded
    sys.argv += ["--smoke"] * SMOKE  # which is taken out where it is read
    hosts.run_inside(__file__)
    sys.path.insert(0, str(PEERS))
    tally, of_hosts = Tally(), given.hosts or [1, 2]
    with tempfile.TemporaryDirectory(prefix="espalier-gang-") as folder:
        hosts.prepare()
        for number in of_hosts:
            with made_pool(number, pathlib.Path(folder) / f"hosts-{number}", environment) as pool:
                gangs(Gang(pool, python, tally), given, len(of_hosts))
        figures = tally.figures() | {"torch_ends_ms": round(torch_ends_ms(python, environment))}
        if not given.no_resize:
            with made_pool(1, pathlib.Path(folder) / "resize", environment) as pool:
                ours = {launch: quantile(restarts(pool, python, launch), 0.5) for launch in ("ranks", "torchrun")}
            theirs = quantile(torchrun_restarts(folder, python, environment), 0.5)
            figures |= {f"{launch}_ms": round(still) for launch, still in ours.items()}
            figures |= {"torchrun_elastic_ms": round(theirs)}
            figures |= {f"{launch}_over_torchrun": round(still / theirs, 2) for launch, still in ours.items()}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
