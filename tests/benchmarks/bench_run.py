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
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ports import free_port  # noqa: E402

BIN = os.environ["ESPALIER_BIN"]
TUNER = os.path.join(BIN, "tuner")
SMOKE = "--smoke" in sys.argv
if SMOKE:
    sys.argv.remove("--smoke")


def usual_or_smoke(usual, smoke):
    return smoke if SMOKE else usual


def export(database, study):
    return json.loads(subprocess.run([TUNER, "export", study, "--db", str(database), "--format", "json"],
                                     check=True, capture_output=True, text=True).stdout)


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


@contextlib.contextmanager
def start_service(database, http, grpc="127.0.0.1:0"):
    """A `tuner serve` that answers on `http`; yields its process and ends it."""
    process = subprocess.Popen([TUNER, "serve", "--grpc", grpc, "--http", http, "--db",
                                str(database)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"http://{http}/healthz", timeout=5).read()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < end, "the service did not start"
                time.sleep(0.01)
        yield process
    finally:
        process.terminate()
        process.wait()


def torch_python():
    """An interpreter with the torch that is built with, and the environment in which it finds espalier. It is run in
    the folder of the benchmarks."""
    root = pathlib.Path(__file__).resolve().parents[2]
    os.chdir(pathlib.Path(__file__).parent)
    library = pathlib.Path(BIN).parent / "lib/libespalier_torch.so"
    python = os.environ.get("ESPALIER_TORCH_PYTHON", str(root / ".deps/venv/bin/python3"))
    return python, os.environ | {"PYTHONPATH": str(root / "python"), "ESPALIER_TORCH_LIBRARY": str(library),
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
