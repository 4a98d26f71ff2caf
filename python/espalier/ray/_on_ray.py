"""`espalier-on-ray`: runs a training script elastically on a Ray cluster, with the options of AdaptDL's command."""
import argparse
import pathlib
import re
import sys
import tempfile

from espalier._reader import reader_may_leave
from espalier.errors import EspalierError, UsageError
from espalier.ray import _results
from espalier.ray._bounded import leave
from espalier.ray._connect import connect, runtime_env

_BAD_INPUT = 2
_LOOK_S = 0.3
_CHUNK = 8 << 20
_MOST_RESTARTS = 1000  # of a job whose machines come and go


def main():
    with reader_may_leave():
        arguments = _parse(sys.argv[1:])
        leave("espalier-on-ray", lambda: _end_of(arguments))


def _end_of(arguments):
    """The exit code."""
    with reader_may_leave():
        try:
            return run(arguments)
        except UsageError as error:
            print(f"espalier-on-ray: {error}", file=sys.stderr)
            return _BAD_INPUT
        except EspalierError as error:
            print(f"espalier-on-ray: {error}", file=sys.stderr)
            return 1


def run(arguments):
    folder = pathlib.Path(arguments.working_dir).resolve()
    if not (folder / arguments.file).is_file():
        raise UsageError(f"--file {arguments.file}: there is no such file in --working-dir {arguments.working_dir}")
    given = runtime_env(arguments.runtime_env) or {}
    print(f"espalier-on-ray: connects to {arguments.uri} and ships {folder}", flush=True)
    ray = connect(arguments.uri, None, {**given, "working_dir": str(folder)})
    from espalier.ray._job import Job
    from espalier.ray._machines import Shape
    # The machine that has this program's end in the cluster, which is not one that comes and goes.
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), False)
    print("espalier-on-ray: connected; the job starts", flush=True)
    job = ray.remote(Job).options(num_cpus=0, max_concurrency=4, scheduling_strategy=here).remote()
    slots = max(1, arguments.gpus)
    spec = {"name": re.sub(r"[^\w.-]", "_", pathlib.Path(arguments.file).stem), "sampler": "queue", "trials": 1,
            "command": ["python3", "-u", arguments.file, *arguments.arguments], "batch_mode": "adaptive",
            "slots": {"min": 1, "max": slots * arguments.max_cluster_size}, "max_restarts": _MOST_RESTARTS}
    ended = job.run.remote(spec, Shape(arguments.cpus, arguments.gpus), arguments.max_cluster_size, slots,
                          arguments.shared_dir)
    try:
        state, reason = _follow(ray, job, ended)
    except ray.exceptions.RayError as error:
        raise EspalierError(f"the job's actor has ended: {getattr(error, 'cause', None) or error}") from error
    output = pathlib.Path(arguments.output or pathlib.Path("espalier-runs") / spec["name"])
    _fetch(ray, job, output)
    print(f"espalier-on-ray: {state.lower()}{'' if state == 'COMPLETE' else f' ({reason})'}; results are in {output}")
    return 0 if state == "COMPLETE" else 1


def _follow(ray, job, ended):
    shown, stopped = 0, False
    while True:
        try:
            done = ray.wait([ended], timeout=_LOOK_S)[0]
            told = ray.get(job.told.remote(shown))
            print(told, end="", flush=True)
            shown += len(told)
            if done:
                return ray.get(ended)
        except KeyboardInterrupt:
            if stopped:
                raise
            stopped = True
            print("espalier-on-ray: stopping: the job saves what it can (interrupt again: at once)", flush=True)
            job.stop.remote()


def _fetch(ray, job, folder):
    with tempfile.TemporaryFile() as archive:
        while chunk := ray.get(job.read.remote(archive.tell(), _CHUNK)):
            archive.write(chunk)
        if archive.tell():
            _results.unpack(archive, folder)


def _parse(words):
    cut = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        prog="espalier-on-ray", description="Runs a training script on a Ray cluster, on as many of its machines as "
        "there are, and brings back what it has written.", epilog="What follows -- is the script's.")
    parser.add_argument("-f", "--file", required=True, help="script to run, within --working-dir")
    parser.add_argument("-u", "--uri", required=True, help="of the cluster, such as ray://HOST:10001")
    parser.add_argument("-m", "--max-cluster-size", type=int, required=True, help="workers at most")
    parser.add_argument("--gpus", type=int, default=1, help="GPUs of a worker, with a replica on each (1); 0: one replica "
                        "on its CPUs")
    parser.add_argument("--cpus", type=int, default=1, help="CPUs of a worker (1)")
    parser.add_argument("-d", "--working-dir", required=True, help="folder that is shipped, in which the script runs")
    parser.add_argument("-o", "--output", help="where what it writes comes (espalier-runs/NAME)")
    parser.add_argument("--runtime-env", metavar="JSON|FILE", help="what else Ray's runtime_env is to have, such as pip")
    parser.add_argument("--shared-dir", help="a folder that all machines see, for checkpoints (absent: machines copy them "
                        "from one another)")
    for name in ("--port-offset", "--checkpoint-timeout", "--cluster-rescale-timeout"):
        parser.add_argument(name, type=int, help="accepted for AdaptDL's sake, and not needed")
    arguments = parser.parse_args(words[:cut])
    arguments.arguments = words[cut + 1:]
    return arguments


if __name__ == "__main__":
    main()
