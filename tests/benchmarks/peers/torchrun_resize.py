"""Resizing 1->2 and 2->1 under torchrun elastic, with the small workload.

usage: torchrun_resize.py [cpu|cuda [ROUNDS]]: prints {"grow": [[still ms, request ms]...], "shrink": ...}, as step_log.await_change

Two agents of torchrun --nnodes=1:2 on this machine. The request to grow is the launch of the second
agent; that to shrink a SIGTERM to it, upon which it leaves the rendezvous in order.

With last_call_timeout's default each rendezvous waits 30 s for more nodes: here it is 1 s.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import torchrun_worker
from step_log import PATIENCE_S, await_change, await_step, free_port


def start_agent(port, words, ranks=1):
    """Of so many ranks that run these words."""
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--nnodes=1:2", f"--nproc-per-node={ranks}",
         "--max-restarts=100", "--monitor-interval=0.1", "--rdzv-backend=c10d", "--rdzv-id=resize",
         f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-conf=last_call_timeout=1", *words],
        env=os.environ | torchrun_worker.ENVIRONMENT,
        stdout=subprocess.DEVNULL, start_new_session=True)


def main(device="cpu", rounds=3):
    found = {"grow": [], "shrink": []}
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "steps")
        open(log, "w").close()
        port = free_port()
        words = [torchrun_worker.__file__, log, device]
        agents = [start_agent(port, words)]
        try:
            await_step(log, 1, 0)
            for _ in range(int(rounds)):
                begun = time.monotonic()
                agents.append(start_agent(port, words))
                found["grow"].append(await_change(log, 2, begun))
                time.sleep(1)
                begun = time.monotonic()
                agents[-1].send_signal(signal.SIGTERM)
                found["shrink"].append(await_change(log, 1, begun))
                agents.pop().wait(timeout=PATIENCE_S)
        finally:
            for agent in agents:
                os.killpg(agent.pid, signal.SIGKILL)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
