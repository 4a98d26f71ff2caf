"""Resizing 1->2 and 2->1 by AdaptDL 0.2.11's restart cycle, with the small workload.

usage: adaptdl_resize.py: prints {"grow": [[still ms, request ms]...], "shrink": ...}, as step_log.await_change

Played as its controller on Kubernetes does: SIGTERM to every replica, each saves its states and exits
with 143, then the other number of replicas starts from the checkpoint. The request is the signal;
nothing is counted for pods.

Under torch 2.6 and later its checkpoints only load with weights_only=False, which is put back here.
"""
import functools
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
    import numpy
    import torch
    numpy.int = int
    torch.load = functools.partial(torch.load, weights_only=False)
    import adaptdl.env
    import adaptdl.torch
    import torch.nn.functional as F
    import models
    torch.set_num_threads(1)
    adaptdl.torch.init_process_group("gloo")
    net, inputs, labels, batch = models.make("small")
    data = torch.utils.data.TensorDataset(inputs, labels)
    loader = adaptdl.torch.AdaptiveDataLoader(data, batch_size=batch, shuffle=True, drop_last=True)
    optimizer = models.make_optimizer(net)
    net = adaptdl.torch.AdaptiveDataParallel(net, optimizer)
    with open(log, "a", buffering=1) as out:
        for _ in adaptdl.torch.remaining_epochs_until(1 << 30):
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(net(x), y).backward()
                optimizer.step()
                if adaptdl.env.replica_rank() == 0:
                    out.write(f"{time.monotonic()} {adaptdl.env.num_replicas()}\n")


def start(replicas, restarts, folder, log):
    port = str(portpicker.pick_unused_port())
    return [subprocess.Popen([sys.executable, __file__, log], stdout=subprocess.DEVNULL, env=os.environ | {
        "ADAPTDL_CHECKPOINT_PATH": folder, "ADAPTDL_MASTER_ADDR": "127.0.0.1", "ADAPTDL_MASTER_PORT": port,
        "ADAPTDL_REPLICA_RANK": str(rank), "ADAPTDL_NUM_REPLICAS": str(replicas), "ADAPTDL_NUM_NODES": "1",
        "ADAPTDL_NUM_RESTARTS": str(restarts), "OMP_NUM_THREADS": "1"}) for rank in range(replicas)]


def main():
    found = {"grow": [], "shrink": []}
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as file:
        running = start(1, 0, folder, file.name)
        try:
            await_step(file.name, 1, 0)
            for restart in range(1, 2 * ROUNDS + 1):
                replicas = 1 + restart % 2
                time.sleep(1)
                begun = time.monotonic()
                for process in running:
                    process.send_signal(signal.SIGTERM)
                codes = [process.wait(timeout=PATIENCE_S) for process in running]
                assert codes == [143] * len(codes), f"exit codes {codes}: want 143"
                running = start(replicas, restart, folder, file.name)
                kind = "grow" if replicas > len(codes) else "shrink"
                found[kind].append(await_change(file.name, replicas, begun))
        finally:
            for process in running:
                process.kill()
    print(json.dumps(found))


if __name__ == "__main__":
    train(sys.argv[1]) if len(sys.argv) > 1 else main()
