#!/usr/bin/env python3
# bench: python_ddp - samples a second of two replicas of a PyTorch program on CPU, beside PyTorch's DistributedDataParallel
# builds: tuner espalier_torch
"""As ddp.py, with our replicas in Python as well."""
import ddp
from elastic_pool import in_python

if __name__ == "__main__":
    ddp.main(in_python)
