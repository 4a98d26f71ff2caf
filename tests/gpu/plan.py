#!/usr/bin/env python3
"""What is run on a machine with a GPU, step by step, each within its own time; ends with one JSON object.
scripts/gpu.sh makes the folder in which this runs: bin/ beside it has the programs. The steps are in the modules beside
this one, each with its limit and the bars that its figures have. Standard library only."""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import group_steps  # noqa: F401
import library_steps  # noqa: F401
import machine_steps  # noqa: F401
import peer_steps  # noqa: F401
import python_steps  # noqa: F401
import speed_steps  # noqa: F401
import suite_steps  # noqa: F401
import trial_steps  # noqa: F401
from step_tools import PARTS, ROOT, Skipped, at_least, at_most, binary, google_test, judged, step  # noqa: F401

PART_LIMIT_S = 600

# The limits of a part's steps add up to no more than the part's. What is worth most comes first.
ORDER = {
    "works": ("environment", "libraries", "device_test", "gradient_buckets", "calls", "a_trial", "two_shares", "nccl_sums",
              "nccl_on_one_gpu", "optimizer_steps", "state_transfer", "checkpoint"),
    "speed": ("overhead_resnet18_64", "overhead_transformer_bf16_32", "beside_pytorch", "overhead_resnet18_16",
              "overhead_resnet18_256", "overhead_resnet18_1024", "overhead_transformer_32", "gradient_kernel",
              "overhead_mlp_128", "overhead_large_32"),
    "groups": ("losses", "killed_while_forming", "stopped_replica", "memory_of_a_share", "collectives", "compute_sanitizer"),
    "holds": ("resize", "checkpoint_pause", "state_transfer_rate", "precision", "soak"),
    "python": ("python_exact", "python_trial", "python_imports", "python_resize", "python_overhead", "python_zygote"),
    "libraries": ("scaled", "compiled", "lightning", "fabric", "transformers"),
    "peers": ("ddp", "torchrun_resize"),
}
for part, names in ORDER.items():
    assert sorted(names) == sorted(PARTS[part]), f"part {part} has other steps: {sorted(PARTS[part])}"
    PARTS[part] = {name: PARTS[part][name] for name in names}


def run_step(part, name):
    """In this process: prints what happens, and its result as the last line."""
    try:
        result = {"result": "passed", "figures": PARTS[part][name].function() or {}}
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
    seconds = time.monotonic() - began
    last = (log.read_text(encoding="utf-8", errors="replace").splitlines() or [""])[-1]
    try:
        result = json.loads(last)
        assert "result" in result
    except (ValueError, AssertionError, TypeError):
        why = f"not done within {limit_s:.0f} s" if seconds >= limit_s else f"it ended with {ended}: {last[:300]}"
        result = {"result": "failed", "reason": why}
    return {"part": part, "step": name, "seconds": round(seconds, 1), **result}


def run(parts, only, patience, out):
    results = []
    for part in parts:
        ends = time.monotonic() + PART_LIMIT_S * patience
        for name, (limit_s, _, bars) in PARTS[part].items():
            if only and name not in only:
                continue
            left_s = ends - time.monotonic()
            if left_s < 1:
                result = {"part": part, "step": name, "seconds": 0.0, "result": "skipped",
                          "reason": f"the {PART_LIMIT_S * patience:g} s of its part are over"}
            else:
                result = run_apart(part, name, min(limit_s * patience, left_s), out)
            if bars:
                result["bars"] = judged(bars, result.get("figures", {}))
            results.append(result)
            print(f"{result['result']:8} {result['seconds']:7.1f} s  {part}/{name}  "
                  f"{json.dumps(result.get('figures', {})) if result['result'] == 'passed' else result['reason']}", flush=True)
            (out / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    return summarise(results)


def summarise(results):
    """Ends with the JSON object. A bar that is missed makes no step a failed one."""
    bars = [{"step": f"{r['part']}/{r['step']}", **bar} for r in results for bar in r.get("bars", ())]
    missed = [bar for bar in bars if bar["met"] is False]
    unmeasured = [bar for bar in bars if bar["met"] == "not measured"]
    for word, those in (("missed", missed), ("no figure", unmeasured)):
        for bar in those:
            print(f"{word:9} {bar['step']}  {bar['figure']} {bar['value']}: the bar is {bar['bar']}", flush=True)
    counts = {word: sum(r["result"] == word for r in results) for word in ("passed", "failed", "skipped")}
    met = sum(bar["met"] is True for bar in bars)
    print(json.dumps(counts | {"bars": {"met": met, "missed": missed, "not_measured": unmeasured}, "steps": results}), flush=True)
    return 1 if counts["failed"] or not results else 0


def main():
    parser = argparse.ArgumentParser(prog="gpu.sh run", description="Runs the steps for a machine with a GPU.")
    parser.add_argument("--part", action="append", choices=sorted(PARTS), help="only these parts; each takes ten minutes at most")
    parser.add_argument("--only", action="append", help="only steps of this name")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("gpu-results"), help="folder for logs and results.json")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: what can be run without a GPU")
    parser.add_argument("--patience", type=float, default=1,
                        help="times the limits of parts, of steps and of what these wait for: for a busy machine")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        run_step(*arguments.step.split("/"))
        return 0
    os.environ["ESPALIER_TEST_DEVICE"] = arguments.device
    os.environ["ESPALIER_TEST_PATIENCE"] = str(arguments.patience)
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
    return run(arguments.part or list(PARTS), arguments.only, arguments.patience, arguments.out)


if __name__ == "__main__":
    sys.exit(main())
