"""A trial of `espalier.tune`: calls its objective.

usage: python -m espalier._call MODULE:FUNCTION | FILE.pkl | env

"env" is the function in the environment variable ESPALIER_OBJECTIVE. What the function returns is the trial's value;
None leaves it at the last report."""
import base64
import importlib
import numbers
import os
import pickle
import sys
import zlib

import espalier
from espalier.errors import UsageError

VARIABLE = "ESPALIER_OBJECTIVE"


def encoded(pickled):
    """As the variable has it."""
    return base64.b85encode(zlib.compress(pickled, 9)).decode()


def _unpickled(pickled):
    try:
        return pickle.loads(pickled)
    except ModuleNotFoundError as error:
        raise UsageError(f"the objective needs the module {error.name!r}, which this machine's Python "
                         f"({sys.executable}) does not have: pip install {error.name.partition('.')[0]}") from error


def load(where):
    if where == "env":
        return _unpickled(zlib.decompress(base64.b85decode(os.environ[VARIABLE])))
    if where.endswith(".pkl"):
        with open(where, "rb") as file:
            return _unpickled(file.read())
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(module), name)


def main():
    objective = load(sys.argv[1])
    trial = espalier.trial()
    value = objective(trial)
    if value is None:
        return
    if hasattr(value, "item"):  # numpy's and torch's scalars
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise UsageError(f"the objective returned {value!r}: must be a number, or nothing after trial.report")
    trial.finish(float(value))


if __name__ == "__main__":
    main()
