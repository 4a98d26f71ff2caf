"""Groups of replicas on one GPU: on shares of it, and by NCCL, which takes them for several hosts by NCCL_HOSTID. See
plan.py."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import tempfile
import time

from step_tools import (ROOT, agent, at_most, await_step, await_that, binary, device, google_test, median, need_gpu, output_of,
                        python, replica_lease, service, slots, step, steps_in)
from trial_steps import submit, train

# What a process of a group that is held runs: $0 is the folder, then comes the program.
HELD = 'touch "$0/held.$$"; until [ -e "$0/go.$$" ] || [ -e "$0/go.all" ]; do sleep 0.05; done; exec "$@"'
ONE_HOST = {"NCCL_SOCKET_IFNAME": "=lo", "NCCL_NET": "Socket", "NCCL_MNNVL_ENABLE": "0", "NCCL_RAS_ENABLE": "0"}


@step("works", 80)
def nccl_sums():
    """Two and three replicas by NCCL end with the parameters that they have by Gloo. On the CPU both ways are Gloo."""
    return google_test("test_elastic_training", "--gtest_filter=*SumsByTwoWays*", replicas=True,
                       says="gradients go by NCCL" if device() == "cuda" else "")


@step("works", 65)
def nccl_on_one_gpu():
    """Two replicas of one trial by NCCL on one GPU, by two real agents."""
    need_gpu()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with service(folder) as address, agent(folder, address, "a", *slots(1), NCCL_HOSTID="a", **ONE_HOST), \
                agent(folder, address, "b", *slots(1), NCCL_HOSTID="b", **ONE_HOST):
            # Longer than NCCL takes to form.
            (trial,), _ = train(folder, address, images=20000, slots={"min": 2, "max": 2})
        said = logs_of(folder, "ab")
        if "gradients go by NCCL" not in said:
            raise AssertionError("the replicas did not use NCCL: " + " | ".join(said.splitlines()[-5:]))
        if trial.get("gradient_transport") != 1:
            raise AssertionError(f"the trial tells gradient_transport {trial.get('gradient_transport')}: want 1, by NCCL")
        return {"replicas": 2}


def logs_of(folder, nodes):
    said = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in folder.glob(f"[{nodes}]/**/replica-*.log"))
    print(said)
    return said


class Group:
    """A trial of three replicas, or of as many as there are nodes, each by an agent of its own on the one device, that trains
    until this is closed: a workload of workloads.h in C++, or in Python. Where it is held, each of its processes waits before
    its program until let_go."""

    def __init__(self, stack, *flags, held=False, nodes="abc", workload="small", in_python=False):
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.logs = self.folder / "logs"
        self.logs.mkdir()
        self.address = stack.enter_context(service(self.folder))
        self.nodes = nodes
        program, environment = [binary("bench_resize_trial")], {}
        if in_python:
            interpreter, environment = python()
            program = [interpreter, str(ROOT / "tests" / "benchmarks" / "python_trial.py")]
        program += [str(self.logs), workload]
        for node in nodes:
            stack.enter_context(agent(self.folder, self.address, node, *slots(1), *flags, NCCL_HOSTID=node,
                                      **environment | ONE_HOST | {"ESPALIER_THREADS": "1"}))
        submit(self.folder, self.address, ["/bin/sh", "-c", HELD, str(self.folder), *program] if held else program)
        if held:
            (first,) = self.await_held(1)
            self.let_go(first)
        await_step(self.logs, "a replica", lambda s: True)
        output_of([binary("tuner"), "pin", "gpu", "0", "--slots", len(nodes), "--service", self.address])

    def await_held(self, count):
        """The pids of so many processes that wait before their program, or have waited."""
        return await_that(f"{count} processes", lambda: len(pids := [int(path.suffix[1:]) for path in self.folder.glob("held.*")])
                          == count and pids)

    def let_go(self, who="all"):
        (self.folder / f"go.{who}").touch()

    def await_full(self, after=0):
        """The first step of a group of all of them later than that generation: (time, generation)."""
        size = len(self.nodes)
        return await_step(self.logs, f"{size} replicas", lambda s: s[3] == size and s[1] > after)[:2]

    def await_all(self, began_s, generation):
        """All have stepped and, on a GPU, their communicator is formed and used."""
        for rank in range(len(self.nodes)):
            await_step(self.logs, f"rank {rank}", lambda s: s[1] == generation and s[2] == rank)
        if device() == "cuda":
            await_step(self.logs, "a group that goes by NCCL", lambda s: s[1] == generation and s[0] > began_s + 4)

    def members(self, generation):
        """{rank: pid} of those that have stepped in it."""
        return {mine[-1][2]: pid for pid, mine in steps_in(self.logs).items() if mine and mine[-1][1] == generation}

    def hit(self, pid, generation, number=signal.SIGKILL):
        """Sends a signal to a replica. Seconds until another group than that generation's steps, and its generation."""
        began = time.clock_gettime(time.CLOCK_MONOTONIC)
        os.kill(pid, number)
        first = await_step(self.logs, "those who are left", lambda s: s[1] > generation)
        return first[0] - began, first[1]

    def check_transport(self):
        said = logs_of(self.folder, self.nodes)
        if device() == "cuda" and "gradients go by NCCL" not in said:
            raise AssertionError("the replicas did not use NCCL")


def device_memory_mb(pid):
    """What nvidia-smi tells of the process or, where it knows none, as in containers, of the whole GPU. None without."""
    if device() != "cuda" or not shutil.which("nvidia-smi"):
        return None
    out = output_of(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"])
    by_process = {int(found): int(mb) for found, mb in re.findall(r"^(\d+), (\d+)$", out, re.MULTILINE)}
    if pid in by_process:
        return by_process[pid]
    return int(output_of(["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]).split()[0])


@step("groups", 220, bars={"back_worst_s": at_most(3), "device_mb_more": at_most(50)})
def losses():
    """One of three is killed, the others go on, and a new one joins, ten times: how long until the next step, and how much
    more memory who has lived through it all has on the GPU."""
    with contextlib.ExitStack() as stack:
        group = Group(stack)
        took_s, memory_mb, after = [], [], 0
        for _ in range(10 if device() == "cuda" else 3):
            began_s, generation = group.await_full(after)
            group.await_all(began_s, generation)
            members = group.members(generation)
            memory_mb.append(device_memory_mb(members.get(0)))
            back_s, after = group.hit(members[max(members)], generation)
            took_s.append(back_s)
        group.check_transport()
    figures = {"back_worst_s": round(max(took_s), 2), "back_p50_s": round(median(took_s), 2), "rounds": len(took_s)}
    if None not in memory_mb:
        figures |= {"device_mb_first": memory_mb[0], "device_mb_more": memory_mb[-1] - memory_mb[0]}
    return figures


@step("groups", 80, bars={"back_s": at_most(3)})
def stopped_replica():
    """One of three stands still (SIGSTOP), and its lease is a second on a GPU: the others go on without it, and another joins."""
    with contextlib.ExitStack() as stack:
        # A busy machine may keep one from its word.
        group = Group(stack, "--replica-lease", 1 if device() == "cuda" else 15)
        began_s, generation = group.await_full()
        group.await_all(began_s, generation)
        members = group.members(generation)
        back_s, after = group.hit(members[max(members)], generation, signal.SIGSTOP)
        group.await_all(*group.await_full(after))
        group.check_transport()
    return {"back_s": round(back_s, 2)}


@step("groups", 80, bars={"*_back_s": at_most(3)})
def killed_while_forming():
    """One of three is killed before it has joined, and another in the first step of a group, when on a GPU the communicator
    is being formed: the others train on, and a group of three forms after it."""
    with contextlib.ExitStack() as stack:
        group = Group(stack, held=True)
        first = await_step(group.logs, "a replica", lambda s: True)
        # Those who join come in together: this one waits for the other, which is held.
        starting = next(pid for pid in group.await_held(3) if not (group.logs / str(pid)).exists())
        group.let_go(starting)
        await_that("replica that starts", (group.logs / str(starting)).exists)
        os.kill(starting, signal.SIGKILL)
        killed = time.clock_gettime(time.CLOCK_MONOTONIC)
        group.let_go()
        on = await_step(group.logs, "those who are left", lambda s: s[0] > killed and s[1] >= first[1])
        _, generation = group.await_full()
        members = group.members(generation)
        back_s, after = group.hit(members[max(members)], generation)
        group.await_all(*group.await_full(after))
        group.check_transport()
    return {"starting_back_s": round(on[0] - killed, 2), "joined_back_s": round(back_s, 2)}


@step("holds", 150, bars={"still_p50_ms": at_most(150)})
def resize():
    """1->2->4->2->1 replicas on shares of one GPU, gradients through the host: how long training stands still."""
    python()  # for the benchmarks' modules
    from elastic_pool import start_pool  # pylint: disable=import-outside-toplevel
    sizes, cycles = ((2, 4, 2, 1), 5) if device() == "cuda" else ((2, 1), 2)
    still = []
    with start_pool("small", slots=max(sizes), agent_flags=replica_lease()) as pool:
        pool.pin(1)  # a program that takes long to start may have more from the beginning
        for cycle in range(cycles):
            changes = [pool.resize(size) for size in sizes]
            still += [1000 * change.still_s for change in changes] if cycle else []
    return {"still_p50_ms": round(median(still), 1), "still_worst_ms": round(max(still), 1), "changes": len(still)}
