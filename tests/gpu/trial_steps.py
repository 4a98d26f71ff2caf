"""Trials by a service and a real agent, and shares of a GPU. See plan.py."""
import contextlib
import json
import pathlib
import re
import subprocess
import tempfile
import time

from step_tools import (ROOT, agent, at_least, at_most, await_step, await_that, binary, device, device_memory_of, exported,
                        median, on_its_own, output_of, python, service, slots, step, steps_in, steps_in_file)


def submit(folder, address, command, trials=1, study="gpu", wait=False, **more):
    """A study of trials that differ in a learning rate."""
    path = folder / f"{study}.json"
    path.write_text(json.dumps({
        "name": study, "metric": {"name": "v", "direction": "minimize"}, "sampler": "random", "trials": trials, "max_restarts": 0,
        "search_space": {"lr": {"_type": "uniform", "_value": [0.01, 0.02]}}, "command": list(map(str, command)), **more}),
        encoding="utf-8")
    output_of([binary("tuner"), "submit", path, "--service", address, *(["--wait"] if wait else [])])


def check_complete(trials):
    for trial in trials:
        if trial["state"] != "TRIAL_COMPLETE":
            raise AssertionError(f"trial {trial['number']} is {trial['state']}: {trial.get('reason')} "
                                 + trial.get("last_output", "")[-500:])


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
    check_complete(trials)
    return trials, max(most, device_memory_of(trials))


@step("works", 80)
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


def steps_per_s(trials):
    """Of each of so many trials that train side by side on a share each, over a time in which all of them do."""
    workload, wanted = ("resnet18", 500) if device() == "cuda" else ("small", 30)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        logs = folder / "logs"
        logs.mkdir()
        with service(folder) as address, agent(folder, address, "n", *slots(2), ESPALIER_THREADS="1"):
            submit(folder, address, [binary("bench_resize_trial"), logs, workload], trials, slots={"min": 1, "max": 1})
            # The first steps warm up.
            began = await_steps_of(logs, trials, wanted // 5)
            await_steps_of(logs, trials, wanted, after_s=began)
            times = [[s[0] for s in mine if s[0] >= began] for mine in steps_in(logs).values()]
    end = min(mine[-1] for mine in times)
    return [sum(began <= at <= end for at in mine) / (end - began) for mine in times]


def await_steps_of(logs, count, wanted, after_s=0.0):
    """When the last of so many replicas had made so many steps after that moment."""
    def when():
        later = [[s[0] for s in mine if s[0] > after_s] for mine in steps_in(logs).values()]
        if len(later) == count and all(len(mine) >= wanted for mine in later):
            return max(mine[wanted - 1] for mine in later)
        return None
    return await_that(f"{wanted} steps of {count} replicas", when)


@step("works", 80, bars={"each_of_alone": at_least(0.45)})
def two_shares():
    """Two trials side by side, each on half of the GPU: the slower one's steps over those of one that is alone."""
    (alone,) = steps_per_s(1)
    both = steps_per_s(2)
    return {"alone_steps_per_s": round(alone, 1), "slower_steps_per_s": round(min(both), 1),
            "each_of_alone": round(min(both) / alone, 3)}


@step("groups", 80, bars={"share": at_most(0.5)})
def memory_of_a_share():
    """A program on one share of the GPU takes memory until LibTorch refuses it, while its neighbour on the other trains. The
    stand-in for a share on the CPU is a limit on the program's address space."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        logs = folder / "logs"
        logs.mkdir()
        interpreter, environment = python()
        with service(folder) as address, agent(folder, address, "n", *slots(2), **environment):
            submit(folder, address, [binary("bench_resize_trial"), logs, "small"], study="neighbour", slots={"min": 1, "max": 1})
            await_step(logs, "the neighbour", lambda s: True)
            submit(folder, address, [interpreter, ROOT / "tests" / "gpu" / "python_program.py", "hoards", folder / "refused"],
                   wait=True, slots={"min": 1, "max": 1})
            check_complete(exported(address))
            now = time.clock_gettime(time.CLOCK_MONOTONIC)
            await_step(logs, "the neighbour, after it", lambda s: s[0] > now)
        refused = json.loads((folder / "refused").read_text(encoding="utf-8"))
    if not refused["error"] or refused["bytes"] == 0:
        raise AssertionError(f"want some memory for the program, and then a refusal: {refused}")
    print(refused["error"])
    return {"share": round(refused["bytes"] / refused["of"], 3), "got_mb": refused["bytes"] >> 20}


@step("holds", 70, bars={"pause_ms": at_most(50)})
def checkpoint_pause():
    """How long training stands still for a checkpoint of 1.2 GB at an epoch's end, and how fast it is written."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        checkpoints = folder / "checkpoints"
        checkpoints.mkdir()
        # Epochs of 100 steps.
        command = [binary("bench_resize_trial"), folder, *(("large", 3200, 1000) if device() == "cuda" else ("small", 25600, 10))]
        with subprocess.Popen([str(word) for word in command], env=on_its_own(ESPALIER_CHECKPOINT_DIR=str(checkpoints)),
                              stdout=subprocess.DEVNULL) as process:
            log = folder / str(process.pid)
            await_that("four epochs", lambda: process.poll() is not None or log.exists() and len(steps_in_file(log)) >= 420)
            if process.poll() is not None:
                raise AssertionError(f"the program has ended with {process.returncode} before its four epochs were over")
            process.kill()
        times = [step[0] for step in steps_in_file(log)]
        rate = rate_of_newest(checkpoints, times)
    gaps = [after - before for before, after in zip(times, times[1:])]
    # The first epoch warms up.
    pauses = [max(gaps[100 * epoch - 2:100 * epoch + 2]) - median(gaps) for epoch in (2, 3, 4)]
    return {"pause_ms": round(1000 * median(pauses), 1), "step_ms": round(1000 * median(gaps), 2)} | rate


def rate_of_newest(checkpoints, times):
    """Bytes of the newest complete checkpoint over the time from its step's end until its file was there."""
    since_boot = time.clock_gettime(time.CLOCK_REALTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
    complete = {int(found[1]): path.stat() for path in checkpoints.iterdir()
                if (found := re.fullmatch(r"step-(\d+)\.pt", path.name)) and int(found[1]) <= len(times)}
    if not complete:
        return {}
    newest = max(complete)
    took_s = complete[newest].st_ctime - since_boot - times[newest - 1]
    return {"written_mb": complete[newest].st_size >> 20, "written_gb_per_s": round(complete[newest].st_size / took_s / 1e9, 2)}


@step("holds", 60, bars={"gb_per_s": at_least(1.5)})
def state_transfer_rate():
    """A trial with a large state grows onto another share of the GPU: how fast the state comes, through the host's memory."""
    state_mb = 2000 if device() == "cuda" else 50
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        logs = folder / "logs"
        logs.mkdir()
        with service(folder) as address, agent(folder, address, "n", *slots(2), ESPALIER_THREADS="1"):
            # So long an epoch that no checkpoint falls into it.
            submit(folder, address, [binary("bench_resize_trial"), logs, "small", 1 << 24, state_mb])
            await_step(logs, "a replica", lambda s: True)
            pin = lambda replicas: output_of([binary("tuner"), "pin", "gpu", "0", "--slots", replicas, "--service", address])
            pin(1)  # it may have begun with two
            await_step(logs, "a lone replica", lambda s: s[3] == 1)
            pin(2)
            await_step(logs, "two replicas", lambda s: s[3] == 2)
            told = await_that("change to two replicas in the record",
                              lambda: [r for r in exported(address)[0]["resizes"] if int(r["to_replicas"]) == 2], every_s=0.2)
    print(told)
    state_s = float(told[-1]["broadcast_s"])
    return {"state_mb": state_mb, "gb_per_s": round(state_mb / 1000 / state_s, 2)}
