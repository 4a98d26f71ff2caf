#!/usr/bin/env python3
# bench: python_accuracy - final accuracy of the Fashion-MNIST example in PyTorch on one replica, on two, and on a randomly changing number, same seeds
# builds: tuner espalier_torch
"""As accuracy.py, with the example in Python."""
import pathlib

import accuracy
from bench_run import torch_python

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/python_fashion_mnist/fashion_mnist.py"


def in_python():
    """The same example in Python."""
    python, environment = torch_python()
    samples = ["--samples", str(accuracy.SMOKE_IMAGES - 5000)] if accuracy.SMOKE else []
    return [python, str(EXAMPLE), *samples], environment


if __name__ == "__main__":
    accuracy.main(in_python)
