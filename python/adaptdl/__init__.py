"""AdaptDL's names over Espalier: a program that was written for AdaptDL runs unchanged.

`adaptdl.torch`, `adaptdl.checkpoint`, `adaptdl.env` and `adaptdl.collective` mean what they mean in AdaptDL 0.2, but
that replicas come and go between two batches, without a restart. docs/python.md tells the differences.
"""
from adaptdl import _job

_job.take_over()
