"""Loss of one of several workers under torchrun, with the small workload.

usage: torchrun_loss.py WORKERS: prints [ms...], from kill -9 of a worker to the first step of its successors

One agent on this machine, which starts all workers again when one has died. --monitor-interval is the
agent's shortest usual look at them; its default of 0.1 s is that of torch 2.11.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import torchrun_worker
from step_log import PATIENCE_S, await_step, free_port

ROUNDS = 3


def main(workers):
    found = []
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "steps")
        open(log, "w").close()
        agent = subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", "--nnodes=1", f"--nproc-per-node={workers}",
             "--max-restarts=100", "--monitor-interval=0.1", "--rdzv-backend=c10d", "--rdzv-id=loss",
             f"--rdzv-endpoint=127.0.0.1:{free_port()}", torchrun_worker.__file__, log],
            env=os.environ | torchrun_worker.ENVIRONMENT,
            stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            await_step(log, workers, 0)
            for i in range(ROUNDS * workers):
                time.sleep(1)
                victim = int(open(f"{log}.{i % workers}").read())
                begun = time.monotonic()
                os.kill(victim, signal.SIGKILL)
                # The others make no step without the one that is gone, but may just have made one.
                after = begun + 0.05
                found.append(1000 * (await_step(log, workers, after) - begun))
        finally:
            os.killpg(agent.pid, signal.SIGTERM)
            agent.wait(timeout=PATIENCE_S)
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))
