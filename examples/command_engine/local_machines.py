#!/usr/bin/env python3
"""An engine of your own for `tuner serve --engine command`. Its machines are processes here; put your cloud's or
batch system's calls in their place. Its argument is a folder with a file for each machine, named by its key:

tuner serve --db pool.db --engine command --max-nodes 4 --engine-option program=examples/command_engine/local_machines.py \\
    --engine-option program=/tmp/machines
"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

FOLDER = pathlib.Path(sys.argv[1])


def started_at(pid):
    """When the process began, so that no other one is taken for it; None: it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return None if fields[0] == "Z" else fields[19]
    except OSError:
        return None


def machines(prefix):
    for file in sorted(FOLDER.glob(prefix + "*")):
        pid, start = file.read_text().split()
        if started_at(pid) == start:
            yield file.name, pid
        else:
            file.unlink()


question = json.loads(sys.stdin.readline())
FOLDER.mkdir(parents=True, exist_ok=True)
if question["verb"] == "request" and not list(machines(question["key"])):
    with open(question["log"], "ab") as log:
        agent = subprocess.Popen(question["command"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 start_new_session=True)
    (FOLDER / question["key"]).write_text(f"{agent.pid} {started_at(agent.pid)}")
elif question["verb"] == "release":
    for _, pid in machines(question["key"]):
        os.kill(int(pid), signal.SIGKILL if question["now"] else signal.SIGTERM)
elif question["verb"] == "list":
    for key, pid in machines(question["prefix"]):
        print(json.dumps({"key": key, "id": pid, "state": "running", "host": socket.gethostname()}))
