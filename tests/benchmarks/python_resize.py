#!/usr/bin/env python3
# bench: python_resize - in-place resizes 1->2->4->2->1 of a PyTorch program: how long training stands still, and from request to first step; beside torchrun elastic, AdaptDL 0.2.11 and Ray Tune's ResourceChangingScheduler
# builds: tuner espalier_torch
"""As resize.py, with our replicas in Python as well."""
import resize
from elastic_pool import in_python

if __name__ == "__main__":
    resize.main(in_python)
