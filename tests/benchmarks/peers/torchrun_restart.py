"""A script's restart from 2 ranks to 4 under torchrun's elastic agents.

usage: torchrun_restart.py FOLDER SCRIPT ROUNDS: prints [ms from the last step of 2 to the first of 4...]

A first agent has two ranks, a second one joins it with two more. Each round begins anew, from the script's own checkpoint.
"""
import json
import os
import pathlib
import signal
import sys
import time

from step_log import await_change, await_step, free_port
from torchrun_resize import start_agent


def main(folder, script, rounds):
    checkpoints, log = pathlib.Path(folder) / "peer", pathlib.Path(folder) / "peer-steps"
    checkpoints.mkdir()
    log.touch()
    still = []
    for _ in range(int(rounds)):
        port, begun = free_port(), time.monotonic()
        words = [script, str(checkpoints), str(log)]
        agents = [start_agent(port, words, 2)]
        try:
            await_step(log, 2, begun)
            time.sleep(2)  # of training
            begun = time.monotonic()
            agents.append(start_agent(port, words, 2))
            still.append(await_change(log, 4, begun)[0])
        finally:
            for agent in agents:  # upon which they end their ranks, which have sessions of their own
                agent.send_signal(signal.SIGTERM)
            for agent in agents:
                agent.wait()
    print(json.dumps(still))


if __name__ == "__main__":
    main(*sys.argv[1:])
