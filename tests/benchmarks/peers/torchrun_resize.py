"""Resizing 1->2 and 2->1 under torchrun elastic, with the small workload.

usage: torchrun_resize.py: prints {"grow": [[still ms, request ms]...], "shrink": ...}, as step_log.await_change

Two agents of torchrun --nnodes=1:2 on this machine. The request to grow is the launch of the second
agent; that to shrink a SIGTERM to it, upon which it leaves the rendezvous in order.

Two settings stand between the defaults and a working resize: with last_call_timeout's default each
rendezvous waits 30 s for more nodes, and torch 2.11 looks for the second round's store at the first
round's address (pytorch issue 123678) unless TORCH_DISABLE_SHARE_RDZV_TCP_STORE is set.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import portpicker

from step_log import PATIENCE_S, await_change, await_step

ROUNDS = 3


def train(log):
    import torch
    import torch.distributed
    import torch.nn.functional as F
    import models
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, replicas = torch.distributed.get_rank(), torch.distributed.get_world_size()
    net, inputs, labels, batch = models.make("small")
    net = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = models.make_optimizer(net)
    agent = os.getppid()
    with open(log, "a", buffering=1) as out:
        while os.getppid() == agent:
            rows = torch.randint(len(inputs), (batch // replicas,))
            optimizer.zero_grad()
            F.cross_entropy(net(inputs[rows]), labels[rows]).backward()
            optimizer.step()
            if rank == 0:
                out.write(f"{time.monotonic()} {replicas}\n")


def start_agent(port, log):
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--nnodes=1:2", "--nproc-per-node=1",
         "--max-restarts=100", "--monitor-interval=0.1", "--rdzv-backend=c10d", "--rdzv-id=resize",
         f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-conf=last_call_timeout=1", __file__, log],
        env=os.environ | {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL, start_new_session=True)


def main():
    found = {"grow": [], "shrink": []}
    with tempfile.NamedTemporaryFile() as file:
        port = portpicker.pick_unused_port()
        agents = [start_agent(port, file.name)]
        try:
            await_step(file.name, 1, 0)
            for _ in range(ROUNDS):
                begun = time.monotonic()
                agents.append(start_agent(port, file.name))
                found["grow"].append(await_change(file.name, 2, begun))
                time.sleep(1)
                begun = time.monotonic()
                agents[-1].send_signal(signal.SIGTERM)
                found["shrink"].append(await_change(file.name, 1, begun))
                agents.pop().wait(timeout=PATIENCE_S)
        finally:
            for agent in agents:
                os.killpg(agent.pid, signal.SIGKILL)
    print(json.dumps(found))


if __name__ == "__main__":
    train(sys.argv[1]) if len(sys.argv) > 1 else main()
