"""Espalier: hyperparameter tuning with elastic trials.

`trial()` gives a training script its parameters and takes its reports. `espalier.torch` makes a PyTorch loop elastic.
`tune` runs a study from a script or a notebook, and `Client` talks to a running service.
"""
import importlib
import os
import sys
import typing

from espalier.errors import (AccessError, EspalierError, NotFoundError, ServiceError, StudyError, TrialError,
                             UnreachableError, UsageError)

__version__ = "0.1.0"
__all__ = ["AccessError", "Client", "EspalierError", "NotFoundError", "Result", "ServiceError", "State", "StudyError",
           "Trial", "TrialError", "UnreachableError", "UsageError", "space", "trial", "tune"]
# What is imported when it is first asked for: some of it brings torch, and trials start without the rest.
_LATER = {"Client": "client", "Result": "_result", "State": "checkpoint", "Trial": "_trial", "tune": "_tune"}
_MODULES = ("checkpoint", "env", "integrations", "optuna", "ray", "space", "testing", "torch")

if "ESPALIER_CONTROL_FD" in os.environ:  # an agent's replica
    from espalier._exit import note_exits
    note_exits()
elif "--set" in sys.argv[1:]:  # of a program that runs alone
    from espalier._set_option import explain_refusal
    explain_refusal()

if typing.TYPE_CHECKING:
    from espalier import checkpoint, env, integrations, optuna, ray, space, testing, torch
    from espalier._result import Result
    from espalier._trial import Trial
    from espalier._tune import tune
    from espalier.checkpoint import State
    from espalier.client import Client


def trial() -> "Trial":
    """The trial of this process, created on the first call. Under an agent it is connected to the tuner; otherwise it
    stands alone, takes parameters from the command line as `--set name=value`, and prints what is reported. It removes
    these from sys.argv, so a program with a parser of its own makes the trial before it parses, and may take what it has
    parsed as defaults: `trial.arguments(parser.parse_args())`."""
    from espalier._the_trial import the_trial
    return the_trial()


def __getattr__(name):
    if name in _LATER:
        globals()[name] = found = getattr(importlib.import_module(f"espalier.{_LATER[name]}"), name)
        return found
    if name in _MODULES:
        try:
            return importlib.import_module(f"espalier.{name}")
        except ModuleNotFoundError as error:  # hasattr and getattr with a default expect no other error
            raise AttributeError(str(error)) from error
    raise AttributeError(f"module 'espalier' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_LATER, *_MODULES})
