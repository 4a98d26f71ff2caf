"""Espalier: hyperparameter tuning with elastic trials.

`trial()` gives a training script its parameters and takes its reports. `espalier.torch` makes a PyTorch loop elastic.
`tune` runs a study from a script or a notebook, and `Client` talks to a running service.
"""
import importlib

from espalier.errors import (AccessError, EspalierError, NotFoundError, ServiceError, StudyError, TrialError,
                             UnreachableError, UsageError)

__version__ = "0.1.0"
__all__ = ["AccessError", "Client", "EspalierError", "NotFoundError", "Result", "ServiceError", "State", "StudyError",
           "Trial", "TrialError", "UnreachableError", "UsageError", "space", "trial", "tune"]
# What is imported when it is first asked for: some of it brings torch, and trials start without the rest.
_LATER = {"Client": "client", "Result": "_result", "State": "checkpoint", "Trial": "_trial", "tune": "_tune"}


def trial():
    """The trial of this process, created on the first call. Under an agent it is connected to the tuner; otherwise it
    stands alone, takes parameters from the command line as `--set name=value`, and prints what is reported. It removes
    these from sys.argv, so a program with a parser of its own makes the trial before it parses."""
    from espalier._trial import the_trial
    return the_trial()


def __getattr__(name):
    if name in _LATER:
        return getattr(importlib.import_module(f"espalier.{_LATER[name]}"), name)
    if name == "space":
        return importlib.import_module("espalier.space")
    raise AttributeError(f"module 'espalier' has no attribute {name!r}")
