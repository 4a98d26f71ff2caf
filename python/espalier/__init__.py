"""Espalier: hyperparameter tuning with elastic trials.

`trial()` is what a training script asks for its parameters and reports to. `espalier.torch` makes a
PyTorch loop elastic.
"""
from espalier.errors import EspalierError, TrialError, UsageError

__version__ = "0.1.0"
__all__ = ["EspalierError", "State", "Trial", "TrialError", "UsageError", "trial"]


def trial():
    """The process's trial, made when it is first asked for. Under an agent it speaks with the tuner;
    otherwise it is alone, takes parameters as `--set name=value` and prints what is reported."""
    from espalier._trial import the_trial
    return the_trial()


def __getattr__(name):  # torch is imported when it is needed
    if name == "Trial":
        from espalier._trial import Trial
        return Trial
    if name == "State":
        from espalier.checkpoint import State
        return State
    raise AttributeError(f"module 'espalier' has no attribute {name!r}")
