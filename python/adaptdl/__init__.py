"""AdaptDL's names over Espalier: a program that was written for AdaptDL runs unchanged.

`adaptdl.torch`, `adaptdl.checkpoint`, `adaptdl.env` and `adaptdl.collective` mean what they mean in AdaptDL 0.2, but
that replicas come and go between two batches, without a restart. docs/python_adaptdl.md tells the differences.
"""
try:
    from adaptdl import _job
except ImportError as error:
    if error.name != "espalier":
        raise
    raise ImportError("adaptdl is Espalier's here, and needs its wheel: pip install espalier_tuner-*.whl (what an index has "
                      "under the name espalier is another project)", name="espalier") from error

_job.take_over()
