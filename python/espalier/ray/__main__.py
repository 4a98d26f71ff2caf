"""`python -m espalier.ray serve` and `python -m espalier.ray run study.json`."""
import argparse
import hashlib
import json
import os
import pathlib
import signal
import sys

from espalier import _display, _run, _study_file
from espalier._reader import reader_may_leave
from espalier._result import Result
from espalier.errors import EspalierError, UsageError
from espalier.ray._bounded import leave
from espalier.ray._connect import connect, runtime_env

_BAD_INPUT = 2
_LOOK_S = 0.5
_GRPC_PORT, _HTTP_PORT = 7077, 7078


def main():
    with reader_may_leave():
        arguments = _parse(sys.argv[1:])
        leave(f"espalier.ray {arguments.verb}", lambda: _end_of(arguments))


def _end_of(arguments):
    """The exit code."""
    with reader_may_leave():
        try:
            return serve(arguments) if arguments.verb == "serve" else run(arguments)
        except UsageError as error:
            print(f"espalier.ray {arguments.verb}: {error}", file=sys.stderr)
            return _BAD_INPUT
        except EspalierError as error:
            print(f"espalier.ray {arguments.verb}: {error}", file=sys.stderr)
            return 1


def serve(arguments):
    """Until it is told to end. Its nodes outlive it where it is killed."""
    ray = connect(arguments.address, f"espalier.{arguments.name}", runtime_env(arguments.runtime_env))
    # These import Ray, which there may not be.
    from espalier.ray._machines import Machines
    from espalier.ray._node import default_root
    from espalier.ray._pool import Pool
    root = arguments.scratch_dir or default_root(arguments.name)
    machines = Machines(_shape(arguments), root, lasting=True, shared_dir=arguments.shared_dir)
    with Pool(machines, arguments.dir, _terms(arguments, ray, _GRPC_PORT, _HTTP_PORT)) as pool:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: pool.stop())
        return pool.wait()


def run(arguments):
    """A pool for one study, which ends with this process in whatever way that goes."""
    spec = _study_file.load(arguments.study)
    folder = pathlib.Path(arguments.dir or pathlib.Path("espalier-runs") / spec["name"]).absolute()
    name = f"run-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"
    ray = connect(arguments.address, f"espalier.{name}", runtime_env(arguments.runtime_env))
    from espalier.ray._machines import Machines
    from espalier.ray._node import default_root, work_in
    from espalier.ray._pool import run_study
    root = arguments.scratch_dir or default_root(name)
    shipped = ray.get_runtime_context().runtime_env.get("working_dir")
    if shipped:
        spec["directory"] = _shipped_directory(spec["directory"], work_in(root))
    machines = Machines(_shape(arguments), root, lasting=False, shipped=shipped, shared_dir=arguments.shared_dir)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    details = run_study(spec, machines, folder, _terms(arguments, ray), lambda service: _show(service, spec["name"]))
    result = Result(details, folder)
    if result.best_trial is not None:
        print(f"best: {result.best_value:.6g} of trial {result.best_trial['number']}, "
              f"{json.dumps(result.best_parameters)}")
    print(f"{result.state.lower()}; the record is in {folder}")
    return 0 if result.state == "COMPLETE" else 1


def _show(service, name):
    display = _display.display_for(True)
    try:
        _run.follow(_run.ServiceRun(name, service), display, _LOOK_S)
    finally:
        display.finish()


def _shipped_directory(directory, work):
    """Where a study's directory is on the machines: within the folder that was shipped."""
    here = os.path.realpath(".")
    inside = os.path.relpath(os.path.realpath(directory), here)
    if inside.split(os.sep)[0] == os.pardir:
        raise UsageError(f"directory {directory} is not in the folder that Ray ships, {here}: the machines do not have it")
    return os.path.normpath(os.path.join(work, inside))


def _shape(arguments):
    from espalier.ray._machines import Shape
    return Shape(arguments.cpus, arguments.gpus, tuple(arguments.resource))


def _terms(arguments, ray, grpc_port=0, http_port=0):
    from espalier.ray._pool import Terms
    slots = arguments.slots or arguments.gpus or max(1, int(arguments.cpus))
    return Terms(ray.util.get_node_ip_address(), arguments.max_nodes, slots, bool(arguments.gpus and not arguments.slots),
                 grpc_port, http_port, tuple(arguments.options))


def _resource(text):
    name, _, amount = text.partition("=")
    try:
        return name, float(amount)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: want NAME=AMOUNT") from None


def _parse(words):
    """What comes after `--` is for `tuner serve`."""
    cut = words.index("--") if "--" in words else len(words)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--address", help="HOST:PORT of the Ray cluster (absent: RAY_ADDRESS, else this machine's)")
    shared.add_argument("--max-nodes", type=int, required=True, help="nodes of the pool at most, each an actor of Ray's")
    shared.add_argument("--cpus", type=float, default=1, help="CPUs of a node (1)")
    shared.add_argument("--gpus", type=int, default=0, help="GPUs of a node, which are its slots (0)")
    shared.add_argument("--slots", type=int, help="slots of a node that are no GPUs (absent: its GPUs, else its CPUs)")
    shared.add_argument("--resource", type=_resource, action="append", default=[], metavar="NAME=AMOUNT",
                        help="of another resource of Ray's that a node takes; may be given several times")
    shared.add_argument("--runtime-env", metavar="JSON|FILE", help="Ray's runtime_env of the nodes")
    shared.add_argument("--scratch-dir", help="where nodes write, on each machine (absent: one of this user's in the "
                        "machine's /tmp)")
    shared.add_argument("--shared-dir", help="a folder that all machines see, for checkpoints (absent: machines copy them "
                        "from one another)")
    parser = argparse.ArgumentParser(prog="python -m espalier.ray", description="Espalier on a Ray cluster.",
                                     epilog="What follows -- is for `tuner serve`, such as -- --min-nodes 1.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    serve_words = verbs.add_parser("serve", parents=[shared], help="a pool for studies, until it is told to end")
    serve_words.add_argument("--name", default="pool", help="the pool's, one of its own on the cluster (pool)")
    serve_words.add_argument("--dir", default="espalier-ray", help="database, tokens and logs of the service "
                             "(espalier-ray)")
    run_words = verbs.add_parser("run", parents=[shared], help="one study, and its results")
    run_words.add_argument("study", help="study file")
    run_words.add_argument("--dir", help="where its record goes (espalier-runs/NAME)")
    arguments = parser.parse_args(words[:cut])
    arguments.options = words[cut + 1:]
    return arguments


if __name__ == "__main__":
    main()
