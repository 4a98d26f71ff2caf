"""Part "peers": two replicas in Python beside PyTorch's own, on one GPU. See plan.py."""
import contextlib
import json
import os
import subprocess
import sys
import time

from group_steps import ONE_HOST, Group
from step_tools import ROOT, at_least, device, median, on_its_own, python, replica_lease, step, steps_in

PEERS = ROOT / "tests" / "benchmarks" / "peers"
BATCH = 128  # of both workloads, over both replicas: as in workloads.h


def peer(script, *arguments):
    """The last line that a peer prints, apart from what it says on standard error."""
    interpreter, _ = python()
    done = subprocess.run([interpreter, PEERS / script, *map(str, arguments)], env=on_its_own(**ONE_HOST), stdout=subprocess.PIPE,
                          text=True, check=True)
    print(done.stdout)
    return done.stdout.splitlines()[-1]


def ours_per_s(workload, seconds):
    with contextlib.ExitStack() as stack:
        group = Group(stack, nodes="ab", workload=workload, in_python=True)
        began_s, generation = group.await_full()
        group.await_all(began_s, generation)
        time.sleep(1 + seconds)  # without a look at the logs, which would take processor time
        first = next(pid for pid, mine in steps_in(group.logs).items() if mine and mine[-1][1:3] == (generation, 0))
        counted = [s for s in steps_in(group.logs)[first] if s[1] == generation and s[0] > began_s + (5 if device() == "cuda" else 0)]
        group.check_transport()
    return BATCH * (counted[-1][4] - counted[0][4]) / (counted[-1][0] - counted[0][0])


@step("peers", 280, bars={"*_over_ddp": at_least(1)})
def ddp():
    """Samples a second of two replicas beside those of DistributedDataParallel, both by NCCL; on the CPU both by Gloo."""
    on_gpu = device() == "cuda"
    figures = {}
    for workload in ("convnet", "mlp") if on_gpu else ("mlp",):
        pairs = []
        for pair in range(2 if on_gpu else 1):
            seconds = 3.0 if on_gpu else 0.2
            sides = {"ours": lambda: ours_per_s(workload, seconds),
                     "ddp": lambda: float(peer("ddp.py", workload, 2, seconds, device()))}
            pairs.append({name: sides[name]() for name in (list(sides) if pair % 2 == 0 else reversed(sides))})
        figures |= {f"{workload}_over_ddp": round(median([pair["ours"] / pair["ddp"] for pair in pairs]), 3),
                    f"{workload}_samples_per_s": round(median([pair["ours"] for pair in pairs])),
                    f"{workload}_ddp_samples_per_s": round(median([pair["ddp"] for pair in pairs]))}
    return figures


@step("peers", 280, bars={"torchrun_*_over_ours": at_least(10)})
def torchrun_resize():
    """From one replica to two and back, beside torchrun: how long training stands still, and from the request to the first
    step. Ours by its second round, when the replica that has left waits as a spare; those of torchrun start anew."""
    python()  # for the benchmarks' modules
    from elastic_pool import in_python, start_pool  # pylint: disable=import-outside-toplevel
    rounds = 2 if device() == "cuda" else 1
    with start_pool("small", slots=2, agent_flags=replica_lease(), program=in_python) as pool:
        pool.pin(1)
        changes = [pool.resize(size) for _ in range(1 + rounds) for size in (2, 1)][2:]
    theirs = json.loads(peer("torchrun_resize.py", device(), rounds))
    figures = {}
    for kind, new in (("grow", 2), ("shrink", 1)):
        mine = [(1000 * c.still_s, 1000 * c.request_s) for c in changes if c.new == new]
        for what, us, them in zip(("still", "request"), zip(*mine), zip(*theirs[kind])):
            figures |= {f"{kind}_{what}_ms": round(median(us), 1), f"torchrun_{kind}_{what}_ms": round(median(them)),
                        f"torchrun_{kind}_{what}_over_ours": round(median(them) / median(us), 1)}
    return figures


if __name__ == "__main__":
    sys.exit(f"{os.path.basename(__file__)}: run plan.py, or scripts/gpu.sh run")
