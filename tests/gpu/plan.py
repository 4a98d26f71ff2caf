#!/usr/bin/env python3
"""What is run on a machine with a GPU, step by step, each within its own time; ends with one JSON object.
scripts/gpu.sh makes the folder in which this runs: bin/ beside it has the programs. Standard library only."""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import python_steps  # noqa: F401  part "python"
from step_tools import (PARTS, ROOT, Skipped, agent, await_step, binary, device, device_memory_of, exported, google_test,
                        median, need_gpu, on_its_own, output_of, service, slots, step, steps_in, steps_in_file)

PART_LIMIT_S = 600


# ---- part "works": ten minutes ----------------------------------------------------------------------------------


@step("works", 60)
def environment():
    """What the machine is: for whoever reads the figures."""
    facts = {"kernel": os.uname().release, "glibc": os.confstr("CS_GNU_LIBC_VERSION"), "processors": os.cpu_count(),
             "shm_mb": shutil.disk_usage("/dev/shm").total >> 20}
    probe = ("import torch, json; print(json.dumps({'torch': torch.__version__, 'cuda': torch.version.cuda,"
             " 'nccl': list(torch.cuda.nccl.version()) if torch.cuda.is_available() else None,"
             " 'gpus': [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]}))")
    facts |= json.loads(output_of([sys.executable, "-c", probe]).splitlines()[-1])
    if shutil.which("nvidia-smi"):
        facts["nvidia_smi"] = output_of(["nvidia-smi", "-L"]).splitlines()
    with contextlib.suppress(OSError):
        os.close(os.pidfd_open(os.getpid()))
        facts["pidfd"] = True
    if device() == "cuda" and not facts["gpus"]:
        raise AssertionError(f"PyTorch sees no GPU: {facts}")
    return facts


@step("works", 60)
def libraries():
    """Every program finds what it is linked with."""
    missing = {}
    folder = pathlib.Path(os.environ["ESPALIER_BIN"])
    for path in sorted([*folder.iterdir(), *folder.glob("lib/libespalier_*.so")]):
        if not path.is_file():
            continue
        lost = [line.split()[0] for line in subprocess.run(["ldd", path], capture_output=True, text=True,
                                                           check=False).stdout.splitlines() if "not found" in line]
        if lost:
            missing[path.name] = lost
    if missing:
        raise AssertionError(f"not found: {missing}")
    return {"programs": sum(1 for path in folder.iterdir() if path.is_file())}


@step("works", 60)
def device_test():
    return google_test("test_trial_runner", "--gtest_filter=AssignedDevice*:EndIfSlotIsAtFault*:MisplacedModel*:"
                                            "AllocatedBytes*:StepTimer*:DeviceStepTimes*")


@step("works", 120)
def gradient_buckets():
    return google_test("test_trial_runner", "--gtest_filter=*GradientBuckets*:NormKernels*")


@step("works", 120)
def collectives():
    return google_test("test_collectives_contract")


@step("works", 60)
def state_transfer():
    return google_test("test_trial_runner", "--gtest_filter=WarmUp*:*EachOptimizer*:StateTransfer*:BrokenTransfer*")


@step("works", 60)
def checkpoint():
    return google_test("test_trial_runner", "--gtest_filter=Checkpoint.*:*EachCheckpointedOptimizer*")


def loop_at(workload, batch, pairs=5, microbatches=1, **variables):
    """Medians of what bench_overhead_loop prints: seconds of a step of the plain loop and of ours, processor seconds of
    both and, where calls are counted, launches, waits and copies of both."""
    out = output_of([binary("bench_overhead_loop"), workload, pairs, 1, microbatches, batch], env=on_its_own(**variables))
    lines = [[float(word) for word in line.split()] for line in out.splitlines() if re.match(r"^[0-9.e-]+( [0-9.e-]+){3,9}$", line)]
    return [median(column) for column in zip(*lines)] + [median([line[1] / line[0] for line in lines])]


@step("works", 300)
def overhead():
    """Our step's time over the plain LibTorch loop's, the median of pairs in turns. Bar: 1.02."""
    figures = {}
    workloads = (("resnet18", (16, 64, 256, 1024)), ("transformer", (32,)), ("transformer_bf16", (32,)), ("mlp", (128,)), ("large", (32,)))
    for workload, batches in workloads if device() == "cuda" else (("mlp", (128,)),):
        for batch in batches:
            plain_s, *_, ratio = loop_at(workload, batch)
            figures |= {f"{workload}_{batch}_ratio": round(ratio, 4), f"{workload}_{batch}_plain_ms": round(1000 * plain_s, 3)}
    return figures


@step("works", 120)
def calls():
    """What a step asks of CUDA, by a counter before its runtime library. Bar: no wait in a step of one microbatch, one in
    a step of two."""
    counter = pathlib.Path(os.environ["ESPALIER_BIN"]) / "lib" / "libespalier_cuda_calls.so"
    if not counter.exists():
        raise Skipped("the counter was not built")
    figures = {}
    for microbatches in (1, 2):
        numbers = loop_at("resnet18", 64, pairs=2, microbatches=microbatches, LD_PRELOAD=str(counter))[4:10]
        for loop, (launches, waits, copies) in (("plain", numbers[:3]), ("ours", numbers[3:])):
            figures |= {f"{loop}_{microbatches}_launches": launches, f"{loop}_{microbatches}_waits": waits,
                        f"{loop}_{microbatches}_copies": copies}
    return figures


def train(folder, address, trials=1, images=5000, **study):
    """ResNet-18 on made-up images for two epochs; the trials, as exported, and the most memory that one had on its GPU."""
    path = folder / "study.json"
    path.write_text(json.dumps({
        "name": "gpu", "metric": {"name": "accuracy", "direction": "maximize"}, "sampler": "random", "trials": trials,
        "search_space": {"lr": {"_type": "uniform", "_value": [0.02, 0.03]}}, "max_restarts": 0,
        "command": [binary("resnet18"), "--epochs", "2", "--data", "synthetic", "--images",
                    str(images) if device() == "cuda" else "100"], **study}), encoding="utf-8")
    with subprocess.Popen([binary("tuner"), "submit", path, "--service", address, "--wait"]) as waiting:
        most = 0
        while waiting.poll() is None:
            with contextlib.suppress(AssertionError):  # there may be no study yet
                most = max(most, device_memory_of(exported(address)))
            with contextlib.suppress(subprocess.TimeoutExpired):
                waiting.wait(1)
    trials = exported(address)
    for trial in trials:
        if trial["state"] != "TRIAL_COMPLETE":
            raise AssertionError(f"trial {trial['number']} is {trial['state']}: {trial.get('reason')} {trial.get('last_output', '')[-500:]}")
    return trials, max(most, device_memory_of(trials))


@step("works", 180)
def a_trial():
    """One trial on one slot by a real agent; its program is on the GPU."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with service(folder) as address, agent(folder, address, "n", *slots(1)):
            began = time.monotonic()
            (trial,), device_bytes = train(folder, address)
            seconds = time.monotonic() - began
    if device() == "cuda" and device_bytes == 0:
        raise AssertionError("the trial had no memory on the GPU: it trained on the CPU")
    return {"seconds": round(seconds, 1), "accuracy": trial.get("value"), "device_mb": device_bytes >> 20}


@step("works", 240)
def two_shares():
    """Two trials side by side, each on half of the GPU, beside one alone. Bar: each at least 0.45 of alone."""
    times = {}
    for count in (1, 2):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            with service(folder) as address, agent(folder, address, "n", *slots(2)):
                began = time.monotonic()
                train(folder, address, trials=count, slots={"min": 1, "max": 1})
                times[count] = time.monotonic() - began
    return {"alone_s": round(times[1], 1), "two_s": round(times[2], 1), "each_of_alone": round(times[1] / times[2], 3)}


# ---- part "holds": ten minutes ----------------------------------------------------------------------------------


@step("holds", 300)
def resize():
    """1->2->4->2->1 replicas on shares of one GPU, gradients through the host. Bar: 150 ms standing still."""
    sys.path.insert(0, str(ROOT / "tests" / "benchmarks"))
    from elastic_pool import start_pool  # pylint: disable=import-outside-toplevel
    still = []
    with start_pool("small", slots=4) as pool:
        for cycle in range(5):
            changes = [pool.resize(size) for size in (2, 4, 2, 1)]
            still += [1000 * change.still_s for change in changes] if cycle else []
    still.sort()
    return {"still_p50_ms": round(still[len(still) // 2], 1), "still_worst_ms": round(still[-1], 1), "changes": len(still)}


@step("holds", 240)
def nccl_on_one_gpu():
    """Two replicas of one trial by NCCL on one GPU, which takes them for two hosts by NCCL_HOSTID."""
    need_gpu()
    variables = {"NCCL_SOCKET_IFNAME": "=lo", "NCCL_NET": "Socket", "NCCL_MNNVL_ENABLE": "0", "NCCL_RAS_ENABLE": "0"}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with service(folder) as address, agent(folder, address, "a", *slots(1), NCCL_HOSTID="a", **variables), \
                agent(folder, address, "b", *slots(1), NCCL_HOSTID="b", **variables):
            train(folder, address, images=20000, slots={"min": 2, "max": 2})  # longer than NCCL takes to form
        said = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in folder.glob("[ab]/**/replica-*.log"))
        print(said)
        if "gradients go by NCCL" not in said:
            raise AssertionError("the replicas did not use NCCL: " + " | ".join(said.splitlines()[-5:]))
        return {"replicas": 2}


def device_memory_by_process():
    if not shutil.which("nvidia-smi"):
        return {}
    out = output_of(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"])
    return {int(pid): int(mb) for pid, mb in re.findall(r"^(\d+), (\d+)$", out, re.MULTILINE)}


@step("holds", 240)
def losses():
    """Three replicas, by NCCL where there is a GPU (which takes them for three hosts by NCCL_HOSTID): one is killed, the
    others go on, and a new one joins, five times. Bars: 3 s until the next step; 50 MB more on the GPU at the end."""
    variables = {"NCCL_SOCKET_IFNAME": "=lo", "NCCL_NET": "Socket", "NCCL_MNNVL_ENABLE": "0", "NCCL_RAS_ENABLE": "0"}
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        logs = folder / "logs"
        logs.mkdir()
        address = stack.enter_context(service(folder))
        for node in "abc":
            stack.enter_context(agent(folder, address, node, *slots(1), NCCL_HOSTID=node, ESPALIER_THREADS="1", **variables))
        path = folder / "study.json"
        path.write_text(json.dumps({
            "name": "gpu", "metric": {"name": "v", "direction": "minimize"}, "sampler": "random", "trials": 1, "max_restarts": 0,
            "search_space": {"lr": {"_type": "uniform", "_value": [0.01, 0.02]}},
            "command": [binary("bench_resize_trial"), str(logs), "small"]}), encoding="utf-8")
        output_of([binary("tuner"), "submit", path, "--service", address])
        await_step(logs, "a replica", lambda s: True)
        output_of([binary("tuner"), "pin", "gpu", "0", "--slots", "3", "--service", address])
        took_s, memory_mb, after = [], [], 0
        for _ in range(5):
            began_s, generation, *_ = await_step(logs, "three replicas", lambda s: s[3] == 3 and s[1] > after)
            for rank in range(3):
                await_step(logs, f"rank {rank}", lambda s, rank=rank: s[1] == generation and s[2] == rank)
            if device() == "cuda":  # by then NCCL's communicator is formed, and used
                await_step(logs, "a group that goes by NCCL", lambda s: s[1] == generation and s[0] > began_s + 4)
            members = {mine[-1][2]: pid for pid, mine in steps_in(logs).items() if mine and mine[-1][1] == generation}
            memory_mb.append(device_memory_by_process().get(members.get(0), 0))
            killed = time.clock_gettime(time.CLOCK_MONOTONIC)
            os.kill(members[max(members)], signal.SIGKILL)
            first = await_step(logs, "those who are left", lambda s: s[1] > generation)
            took_s.append(first[0] - killed)
            after = first[1]
        said = "\n".join(log.read_text(encoding="utf-8", errors="replace") for log in folder.glob("[abc]/**/replica-*.log"))
        print(said)
    if device() == "cuda" and "gradients go by NCCL" not in said:
        raise AssertionError("the replicas did not use NCCL")
    return {"back_worst_s": round(max(took_s), 2), "back_p50_s": round(median(took_s), 2), "rounds": len(took_s),
            "device_mb_first": memory_mb[0], "device_mb_last": memory_mb[-1]}


@step("holds", 60)
def precision():
    """fp16 and bf16 beside float, and a step whose loss is no number, alone and in a group."""
    return google_test("test_elastic_training", "--gtest_filter=*Precision*:*Skipping*")


@step("holds", 90)
def checkpoint_pause():
    """How long training stands still for a checkpoint of 1.2 GB at an epoch's end. Bar: 50 ms on a GPU."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        checkpoints = folder / "checkpoints"
        checkpoints.mkdir()
        # Epochs of 100 steps.
        command = [binary("bench_resize_trial"), folder, *(("large", 3200, 1000) if device() == "cuda" else ("small", 25600, 10))]
        with subprocess.Popen([str(word) for word in command], env=on_its_own(ESPALIER_CHECKPOINT_DIR=str(checkpoints)),
                              stdout=subprocess.DEVNULL) as process:
            log = folder / str(process.pid)
            end = time.monotonic() + 60
            while not log.exists() or len(steps_in_file(log)) < 420:
                if time.monotonic() > end or process.poll() is not None:
                    raise AssertionError("no four epochs within 60 s")
                time.sleep(0.1)
            process.kill()
        times = [step[0] for step in steps_in_file(log)]
        gaps = [after - before for before, after in zip(times, times[1:])]
        # The first epoch warms up.
        pauses = [max(gaps[100 * epoch - 2:100 * epoch + 2]) - median(gaps) for epoch in (2, 3, 4)]
        return {"pause_ms": round(1000 * median(pauses), 1), "step_ms": round(1000 * median(gaps), 2)}


@step("holds", 180)
def soak():
    return google_test("test_elastic_soak")


# ---- running them -----------------------------------------------------------------------------------------------


def run_step(part, name):
    """In this process: prints what happens, and its result as the last line."""
    _, function = PARTS[part][name]
    try:
        result = {"result": "passed", "figures": function() or {}}
    except Skipped as reason:
        result = {"result": "skipped", "reason": str(reason)}
    except Exception as error:  # pylint: disable=broad-except  # whatever it is, the next step is run
        result = {"result": "failed", "reason": f"{type(error).__name__}: {error}"}
    print(json.dumps(result), flush=True)


def run_apart(part, name, limit_s, out):
    """In a process of its own, which is ended with all that it has started when its time is over."""
    began = time.monotonic()
    log = out / f"{part}-{name}.log"
    with open(log, "w", encoding="utf-8") as to:
        process = subprocess.Popen([sys.executable, "-u", sys.argv[0], "--step", f"{part}/{name}"], stdout=to,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            pass
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        ended = process.wait()
    seconds = round(time.monotonic() - began, 1)
    last = (log.read_text(encoding="utf-8", errors="replace").splitlines() or [""])[-1]
    try:
        result = json.loads(last)
        assert "result" in result
    except (ValueError, AssertionError, TypeError):
        why = f"not done within {limit_s:.0f} s" if seconds >= limit_s else f"it ended with {ended}: {last[:300]}"
        result = {"result": "failed", "reason": why}
    return {"part": part, "step": name, "seconds": seconds, **result}


def run(parts, only, out):
    results = []
    for part in parts:
        ends = time.monotonic() + PART_LIMIT_S
        for name, (limit_s, _) in PARTS[part].items():
            if only and name not in only:
                continue
            left_s = ends - time.monotonic()
            if left_s < 1:
                result = {"part": part, "step": name, "seconds": 0.0, "result": "skipped",
                          "reason": f"the {PART_LIMIT_S:g} s of its part are over"}
            else:
                result = run_apart(part, name, min(limit_s, left_s), out)
            results.append(result)
            print(f"{result['result']:8} {result['seconds']:7.1f} s  {part}/{name}  "
                  f"{json.dumps(result.get('figures', {})) if result['result'] == 'passed' else result['reason']}", flush=True)
            (out / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    counts = {word: sum(r["result"] == word for r in results) for word in ("passed", "failed", "skipped")}
    print(json.dumps(counts | {"steps": results}), flush=True)
    return 1 if counts["failed"] or not results else 0


def main():
    parser = argparse.ArgumentParser(prog="gpu.sh run", description="Runs the steps for a machine with a GPU.")
    parser.add_argument("--part", action="append", choices=sorted(PARTS), help="only these parts; each takes ten minutes at most")
    parser.add_argument("--only", action="append", help="only steps of this name")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("gpu-results"), help="folder for logs and results.json")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: what can be run without a GPU")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        run_step(*arguments.step.split("/"))
        return 0
    os.environ["ESPALIER_TEST_DEVICE"] = arguments.device
    if arguments.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ.setdefault("ESPALIER_BIN", str(ROOT / "bin"))
    if (library := pathlib.Path(os.environ["ESPALIER_BIN"]) / "lib" / "libespalier_torch.so").exists():
        os.environ.setdefault("ESPALIER_TORCH_LIBRARY", str(library))
    os.environ.setdefault("ESPALIER_TORCH_PYTHON", sys.executable)
    arguments.out.mkdir(parents=True, exist_ok=True)
    known = {name for part in PARTS.values() for name in part}
    if unknown := set(arguments.only or ()) - known:
        parser.error(f"--only {sorted(unknown)[0]}: want one of {', '.join(sorted(known))}")
    return run(arguments.part or list(PARTS), arguments.only, arguments.out)


if __name__ == "__main__":
    sys.exit(main())
