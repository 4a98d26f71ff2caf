"""Part "speed": our loop beside the plain ones of LibTorch and PyTorch, each model within its own time; and what a step
asks of CUDA. See plan.py."""
import functools
import re

from step_tools import (ROOT, at_least, at_most, binary, cuda_counter, device, median, need_gpu, on_its_own, on_the_device,
                        output_of, python, rows_of, step)

MOST_OVERHEAD = 1.02


def loop_at(workload, batch, pairs=3, microbatches=1, turn_s=0.3, **variables):
    """Medians of what bench_overhead_loop prints: seconds of a step of the plain loop and of ours, processor seconds of
    both and, where calls are counted, launches, waits and copies of both. Then that of ours over plain."""
    if device() != "cuda":
        pairs, turn_s = 1, 0.01
    out = output_of([binary("bench_overhead_loop"), workload, pairs, turn_s, microbatches, batch], env=on_its_own(**variables))
    lines = rows_of(out, 4)
    return [median(column) for column in zip(*lines)] + [median([line[1] / line[0] for line in lines])]


# None in a step of one microbatch, one in a step of two; and one at an epoch's end.
@step("works", 45, bars={"ours_1_waits": at_most(0.05), "ours_2_waits": at_most(1.05)})
def calls():
    """What a step asks of CUDA, by a counter before its runtime library: of one microbatch, and of two."""
    workload, batch = ("resnet18", 64) if device() == "cuda" else ("mlp", 16)
    figures = {}
    for microbatches in (1, 2):
        with cuda_counter() as counter:
            numbers = loop_at(workload, batch, pairs=2, microbatches=microbatches, turn_s=0.3, LD_PRELOAD=counter)[4:10]
        for loop, (launches, waits, copies) in (("plain", numbers[:3]), ("ours", numbers[3:])):
            figures |= {f"{loop}_{microbatches}_launches": launches, f"{loop}_{microbatches}_waits": waits,
                        f"{loop}_{microbatches}_copies": copies}
    if device() == "cuda" and figures["plain_1_launches"] == 0:
        raise AssertionError("no launch was counted: it did not train on the GPU, or the counter was not asked")
    return figures


def overhead(workload, batch):
    """Our step's time over the plain LibTorch loop's, the median of pairs in turns."""
    if workload != "mlp":
        need_gpu()
    plain_s, *_, ratio = loop_at(workload, batch)
    return {"ratio": round(ratio, 4), "plain_ms": round(1000 * plain_s, 3)}


for each in (("resnet18", 16), ("resnet18", 64), ("resnet18", 256), ("resnet18", 1024), ("transformer", 32),
             ("transformer_bf16", 32), ("mlp", 128), ("large", 32)):
    step("speed", 45, bars={"ratio": at_most(MOST_OVERHEAD)}, name=f"overhead_{each[0]}_{each[1]}")(
        functools.partial(overhead, *each))


@step("speed", 100, bars={"of_plain": at_least(0.98), "of_pytorch": at_least(1)})
def beside_pytorch():
    """Samples a second of one net at one batch: our loop in C++ over the plain ones of LibTorch and of PyTorch."""
    model, batch, pairs, turn_s = ("resnet18", 16, 5, 0.5) if device() == "cuda" else ("convnet", 64, 1, 0.02)
    plain_s, ours_s, *_, ratio = loop_at(model, batch)
    interpreter, environment = python()
    out = output_of([interpreter, ROOT / "tests" / "benchmarks" / "python_loops.py", model, pairs, turn_s],
                    env=on_its_own(**environment))
    on_the_device(re.search(r"^on (\S+)$", out, re.MULTILINE)[1])
    pytorch_s, python_s, *_ = (median(column) for column in zip(*rows_of(out, 4)))
    seconds = {"plain": plain_s, "ours": ours_s, "pytorch": pytorch_s, "ours_in_python": python_s}
    return {f"{loop}_samples_per_s": round(batch / taken, 1) for loop, taken in seconds.items()} | {
        "of_plain": round(1 / ratio, 4), "of_pytorch": round(pytorch_s / ours_s, 4)}


@step("speed", 100, bars={"*_ratio": at_most(1)})
def gradient_kernel():
    """Our step's time with our kernel over that with LibTorch's operations in its place, both beside the plain loop in the
    same process: from one process to the next the host's speed differs more than they do."""
    need_gpu()
    figures = {}
    for workload, batch in (("resnet18", 256), ("transformer", 32)):
        ratios = {word: loop_at(workload, batch, pairs=2, ESPALIER_GRADIENT_KERNEL=word)[-1] for word in ("on", "off")}
        figures |= {f"{workload}_{batch}_ratio": round(ratios["on"] / ratios["off"], 4)}
    return figures
