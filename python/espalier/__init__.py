"""Espalier: hyperparameter tuning with elastic trials.

`trial()` is what a training script asks for its parameters and reports to. `espalier.torch` makes a
PyTorch loop elastic. `tune` runs a study from a script or a notebook, and `Client` speaks with a running service.
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
    """The process's trial, made when it is first asked for. Under an agent it speaks with the tuner;
    otherwise it is alone, takes parameters as `--set name=value` and prints what is reported."""
    from espalier._trial import the_trial
    return the_trial()


def __getattr__(name):
    if name in _LATER:
        return getattr(importlib.import_module(f"espalier.{_LATER[name]}"), name)
    if name == "space":
        return importlib.import_module("espalier.space")
    raise AttributeError(f"module 'espalier' has no attribute {name!r}")
