"""Part "python": programs in Python on the device, each within its own time. See plan.py."""
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from step_tools import (ROOT, agent, at_most, await_step, binary, cuda_counter, device, device_memory_of, exported, median,
                        on_its_own, on_the_device, output_of, python, replica_lease, rows_of, service, slots, step)
from trial_steps import check_complete

PROGRAM = ROOT / "tests" / "gpu" / "python_program.py"
BENCHMARKS = ROOT / "tests" / "benchmarks"

# What a zygote imports, in its way (python/espalier/_zygote.py).
IMPORTS = """
import ctypes
import torch, torch._dynamo, espalier.torch
from espalier import _library
_library.load()
print("asked of CUDA:", ctypes.CDLL(None).CudaDeviceCalls())
torch._C._cuda_getDeviceCount()
print("and then:", ctypes.CDLL(None).CudaDeviceCalls())
"""


@step("python", 60)
def python_exact():
    """Parameters after some steps of our loop beside the plain PyTorch loop's. Bar: 1e-5 of the largest; on the CPU none."""
    interpreter, environment = python()
    figures = {}
    for optimizer in ("SGD", "AdamW"):
        result = json.loads(output_of([interpreter, PROGRAM, "exact", optimizer], env=on_its_own(**environment)).splitlines()[-1])
        on_the_device(result["device"])
        if result["steps"] == 0 or result["difference"] > (1e-5 if device() == "cuda" else 0):
            raise AssertionError(f"{optimizer} went another way than the plain loop: {result}")
        figures[f"{optimizer}_difference"] = result["difference"]
    return figures


@step("python", 120, bars={"convnet_ratio": at_most(1.03), "resnet18_ratio": at_most(1.015),
                           "small_mlp_ratio": at_most(1.06)})
def python_overhead():
    """Our step's time over the plain PyTorch loop's, the median of pairs in turns."""
    interpreter, environment = python()
    figures = {}
    for model in ("small_mlp", "convnet", "resnet18") if device() == "cuda" else ("small_mlp",):
        pairs, turn_s = (5, 0.5) if device() == "cuda" else (1, 0.02)
        out = output_of([interpreter, BENCHMARKS / "python_loops.py", model, pairs, turn_s], env=on_its_own(**environment))
        lines = rows_of(out, 4)
        on_the_device(re.search(r"^on (\S+)$", out, re.MULTILINE)[1])
        figures |= {f"{model}_ratio": round(median([line[1] / line[0] for line in lines]), 4),
                    f"{model}_plain_ms": round(1000 * median([line[0] for line in lines]), 3),
                    f"{model}_us_per_step": round(1e6 * median([line[1] - line[0] for line in lines]), 1)}
    return figures


@contextlib.contextmanager
def submitted(folder, slot_count, **study):
    """A service, an agent with slots of one device, and a study on them; yields the service's address, and the process
    that waits for the study's end."""
    interpreter, environment = python()
    study["command"] = [interpreter, *map(str, study["command"])]
    path = folder / "study.json"
    path.write_text(json.dumps({"name": "gpu", "sampler": "random", "trials": 1, "max_restarts": 0, **study}), encoding="utf-8")
    with service(folder) as address, agent(folder, address, "n", *slots(slot_count), **environment):
        with subprocess.Popen([binary("tuner"), "submit", path, "--service", address, "--wait"]) as waiting:
            yield address, waiting


def await_end(address, waiting):
    """All trials are complete; as exported."""
    waiting.wait()
    trials = exported(address)
    check_complete(trials)
    return trials


def resized_program(command, lr, least):
    """Runs a program of Python's as one trial on one slot, on two and on one again, by a real agent. All replicas are on the
    device, and its accuracy comes to `least`. The folder for its records is the command's last word."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for inner in ("logs", "devices"):
            (folder / inner).mkdir()
        with submitted(folder, 2, command=[*command, folder], metric={"name": "accuracy", "direction": "maximize"},
                       search_space={"lr": {"_type": "uniform", "_value": [lr / 2, lr]}}) as (address, waiting):
            generation, memory = 0, 0
            await_step(folder / "logs", "the trial", lambda s: True)
            for replicas in (1, 2, 1):
                output_of([binary("tuner"), "pin", "gpu", "0", "--slots", replicas, "--service", address])
                generation = await_step(folder / "logs", f"{replicas} replicas",
                                        lambda s, n=replicas, after=generation: s[3] == n and s[1] > after)[1]
                memory = max(memory, device_memory_of(exported(address)))
            (folder / "stop").touch()
            (trial,) = await_end(address, waiting)
        devices = [path.read_text(encoding="utf-8") for path in (folder / "devices").iterdir()]
    for where in devices:
        on_the_device(where)
    if trial["value"] < least:
        raise AssertionError(f"accuracy {trial['value']}: it has learnt nothing")
    return {"accuracy": trial["value"], "processes": len(devices), "device_mb": memory >> 20}


@step("python", 100)
def python_trial():
    """A plain loop with the imports changed."""
    return resized_program([PROGRAM, "trains"], 0.1, 0.9)


@step("python", 150, bars={"still_p50_ms": at_most(150)})
def python_resize():
    """1->2->4->2->1 replicas in Python on shares of one GPU, gradients through the host: how long training
    stands still."""
    python()  # for the benchmarks' modules
    from elastic_pool import in_python, start_pool  # pylint: disable=import-outside-toplevel
    sizes, cycles = ((2, 4, 2, 1), 4) if device() == "cuda" else ((2, 1), 2)
    still, request = [], []
    with start_pool("small", slots=max(sizes), agent_flags=replica_lease(), program=in_python) as pool:
        pool.pin(1)  # a program that takes long to start may have more from the beginning
        for cycle in range(cycles):
            changes = [pool.resize(size) for size in sizes]
            still += [1000 * change.still_s for change in changes] if cycle else []
            request += [1000 * change.request_s for change in changes] if cycle else []
        memory = int(pool.trial().get("device_memory_bytes", 0))
    if device() == "cuda" and memory == 0:
        raise AssertionError("the trial had no memory on the GPU: it trained on the CPU")
    return {"still_p50_ms": round(median(still), 1), "still_worst_ms": round(max(still), 1),
            "request_p50_ms": round(median(request), 1), "changes": len(still)}


@step("python", 40)
def python_imports():
    """What programs import before they are forked asks nothing of CUDA, which would not work in the fork then."""
    interpreter, environment = python()
    with cuda_counter() as counter:
        # As the zygote does: PyTorch then asks NVML instead.
        out = output_of([interpreter, "-c", IMPORTS], env=on_its_own(LD_PRELOAD=counter, PYTORCH_NVML_BASED_CUDA_CHECK="1",
                                                                     **environment))
    before, after = (int(re.search(rf"^{word}: (\d+)$", out, re.MULTILINE)[1]) for word in ("asked of CUDA", "and then"))
    if before or not after:
        raise AssertionError(f"CUDA was asked {before} times by the imports, and {after} times when PyTorch asked it for GPUs")
    return {"calls": before}


@step("python", 130)
def python_zygote():
    """Short trials one after the other: those that are forked from a process with the imports done work on the device, and
    begin sooner than by an interpreter of their own. Bars on two CPU cores: 80 ms to the first line, 150 to the first step."""
    python()  # for the benchmarks' modules
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        stamps = folder / "stamps"
        with submitted(folder, 1, command=[BENCHMARKS / "python_start_trial.py", stamps], trials=20,
                       preload=[], search_space={"x": {"_type": "uniform", "_value": [0, 1]}}) as (address, waiting):
            await_end(address, waiting)
        starts = [json.loads(line) for line in stamps.read_text(encoding="utf-8").splitlines()]
    for start in starts:
        on_the_device(start["device"])
    figures = {}
    for kind, forked in (("forked", True), ("cold", False)):
        mine = [start for start in starts if start["forked"] == forked]
        if not mine:
            raise AssertionError(f"no trial was {kind}, of {len(starts)}")
        figures |= {f"{kind}": len(mine),
                    f"{kind}_first_line_ms": round(median([1000 * (start["first_line"] - start["order"]) for start in mine]), 1),
                    f"{kind}_first_step_ms": round(median([1000 * (start["steps"][0] - start["order"]) for start in mine]), 1)}
    return figures


if __name__ == "__main__":
    sys.exit("python_steps.py: run plan.py, or scripts/gpu.sh run")
