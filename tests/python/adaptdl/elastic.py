"""A job of AdaptDL's on this machine, for its tests: adaptdl.conftest stands in for what they import by that
name."""
import functools
import json
import os
import pathlib
import select
import signal
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e/nni"))
from ports import two_free_ports  # noqa: E402

_LONGEST_RUN_S = 120


def elastic_multiprocessing(function):
    """Runs the function in a process of its own, as a job of one replica. Where it returns a number, the job is
    run again from what it has saved, by so many replicas, which all have to return the same."""
    @functools.wraps(function)
    def run(*args, **kwargs):
        replicas, restarts = 1, 0
        with tempfile.TemporaryDirectory() as folder:
            while replicas:
                returned = _run_once(lambda: function(*args, **kwargs), folder, replicas, restarts)
                assert len(set(returned)) == 1, f"the replicas returned {returned}: want the same of each"
                replicas, restarts = returned[0], restarts + 1
    return run


def _run_once(function, folder, replicas, restarts):
    job = {"CHECKPOINT_PATH": folder, "JOB_ID": "job", "MASTER_PORT": two_free_ports(), "NUM_REPLICAS": replicas, "NUM_NODES": 1,
           "NUM_RESTARTS": restarts}
    children = [_start(function, {**job, "REPLICA_RANK": rank}) for rank in range(replicas)]
    try:
        end = time.monotonic() + _LONGEST_RUN_S
        return [_returned(rank, *child, end) for rank, child in enumerate(children)]
    finally:
        for child, pipe in children:
            os.close(pipe)
            if os.waitpid(child, os.WNOHANG)[0] == 0:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _returned(rank, child, pipe, end):
    """What that replica's function has returned."""
    said = b""
    while True:
        ready, _, _ = select.select([pipe], [], [], max(end - time.monotonic(), 0))
        assert ready, f"replica {rank} has not returned after {_LONGEST_RUN_S} s"
        some = os.read(pipe, 4096)
        if not some:
            break
        said += some
    assert said, f"replica {rank} has failed, see its traceback"
    return json.loads(said)


def _start(function, variables):
    read, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        os.close(write)
        return child, read
    code = 1
    try:
        os.environ.update({f"ADAPTDL_{name}": str(value) for name, value in variables.items()})
        os.write(write, json.dumps(function()).encode())
        code = 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
