"""What the benchmarks share: the built executables, how to talk to them, and --smoke: each as briefly
as it can run and still call everything but the peers that would have to be installed first. The
figures of such a run mean nothing."""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys

BIN = os.environ["ESPALIER_BIN"]
TUNER = os.path.join(BIN, "tuner")
SMOKE = "--smoke" in sys.argv
if SMOKE:
    sys.argv.remove("--smoke")


def usual_or_smoke(usual, smoke):
    return smoke if SMOKE else usual


# Beside other tests a machine may keep an agent, or a replica that does not hang, from its word.
PATIENT_SERVICE = usual_or_smoke([], ["--lease", 60])
PATIENT_AGENT = usual_or_smoke([], ["--replica-lease", 0])


def export(database, study):
    return json.loads(subprocess.run([TUNER, "export", study, "--db", str(database), "--format", "json"],
                                     check=True, capture_output=True, text=True).stdout)


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


ANY_PORT = "127.0.0.1:0"  # what listens there says which port it got


def serve(database, *options, grpc=ANY_PORT):
    """A `tuner serve` with its gRPC endpoint at a port that the kernel gives: told_address says where."""
    return subprocess.Popen([TUNER, "serve", "--grpc", grpc, "--db", str(database),
                             *map(str, [*PATIENT_SERVICE, *options])],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def told_address(process, endpoint="gRPC"):
    """HOST:PORT of one of a service's endpoints: it prints those of gRPC, HTTP and dashboard, in that order, once it
    listens."""
    for line in process.stdout:
        told = re.match(rf"{endpoint} (?:\w+://)?([^\s/]+)", line)
        if told:
            return told[1]
    raise AssertionError(f"no {endpoint} address is told by {' '.join(process.args)}")


@contextlib.contextmanager
def start_service(database):
    """A `tuner serve` with HTTP; yields its process and its addresses for gRPC and HTTP, and ends it."""
    process = serve(database, "--http", ANY_PORT)
    try:
        yield process, told_address(process), told_address(process, "HTTP")
    finally:
        process.terminate()
        process.wait()


def torch_python():
    """An interpreter with the torch that is built with, and the environment in which it finds espalier. It is run in
    the folder of the benchmarks."""
    root = pathlib.Path(__file__).resolve().parents[2]
    os.chdir(pathlib.Path(__file__).parent)
    library = os.environ.get("ESPALIER_TORCH_LIBRARY", str(pathlib.Path(BIN).parent / "lib/libespalier_torch.so"))
    python = os.environ.get("ESPALIER_TORCH_PYTHON", str(root / ".deps/venv/bin/python3"))
    given = os.environ.get("PYTHONPATH", "")
    return python, os.environ | {"PYTHONPATH": f"{root / 'python'}{os.pathsep * bool(given)}{given}", "ESPALIER_TORCH_LIBRARY": library,
                                 "ESPALIER_THREADS": "1"}


def peers_python():
    """The interpreter of the tools that we are compared with, made when it is not there."""
    script = pathlib.Path(__file__).parent / "peers" / "setup.sh"
    return subprocess.run([script], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def resident_mb(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024


def optuna_load(address, connections, in_flight, trials):
    """What bench_optuna_load measured: calls_per_s, p50_ms, p99_ms, max_ms."""
    done = subprocess.run([os.path.join(BIN, "bench_optuna_load"), address, str(connections), str(in_flight),
                           str(trials)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def setup_optuna(version):
    """The interpreter of an environment with that Optuna, made when it is not there."""
    script = pathlib.Path(__file__).parents[2] / "scripts" / "setup-optuna.sh"
    folder = subprocess.run([script, version], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return os.path.join(folder, "venv", "bin", "python")
