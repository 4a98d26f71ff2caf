#!/usr/bin/env python3
# bench: python_loss - next step of the survivors after one of three replicas of a PyTorch program is killed, and after one hangs, beside torchrun
# builds: tuner espalier_torch
"""As replica_loss.py, with our replicas in Python as well."""
import replica_loss
from elastic_pool import in_python

if __name__ == "__main__":
    replica_loss.main(in_python)
