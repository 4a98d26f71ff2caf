"""Part "libraries": what PyTorch's users have around their loops, on the device, on one slot, on two and on one again, each
within its own time. See plan.py."""
import functools
import subprocess
import sys

from python_steps import resized_program
from step_tools import ROOT, Skipped, need_gpu, on_its_own, python, step

PROGRAM = ROOT / "tests" / "gpu" / "library_program.py"
# What a program needs besides PyTorch.
NEEDS = {"scaled": "torch", "compiled": "triton", "lightning": "lightning", "fabric": "lightning", "transformers": "transformers"}


def trained(kind):
    """All replicas are on the device, and it learns."""
    if kind == "compiled":
        need_gpu()  # on a CPU it takes a compiler
    interpreter, environment = python()
    if subprocess.run([interpreter, "-c", f"import {NEEDS[kind]}"], env=on_its_own(**environment), check=False).returncode != 0:
        raise Skipped(f"{interpreter} has no {NEEDS[kind]}")
    lr, least = (0.004, 0.6) if kind == "transformers" else (0.02, 0.7)
    return resized_program([PROGRAM, kind], lr, least)


for each in NEEDS:
    step("libraries", 110, name=each)(functools.partial(trained, each))


if __name__ == "__main__":
    sys.exit("library_steps.py: run plan.py, or scripts/gpu.sh run")
