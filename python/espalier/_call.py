"""A trial of `espalier.tune`: calls its objective.

usage: python -m espalier._call MODULE:FUNCTION | FILE.pkl | env

"env" is the function in the environment variable ESPALIER_OBJECTIVE. What the function returns is the trial's value;
None leaves it at the last report."""
import base64
import importlib
import numbers
import os
import sys
import traceback
import zlib

from espalier import _sources
from espalier._the_trial import the_trial
from espalier.errors import UsageError

VARIABLE = "ESPALIER_OBJECTIVE"


def encoded(pickled):
    """As the variable has it."""
    return base64.b85encode(zlib.compress(pickled, 9)).decode()


def _unpickled(pickled):
    try:
        return _sources.loads(pickled)
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


def _show(kind, error, trace):
    """From the objective's first frame on, with lines that no file here has."""
    while trace is not None and _is_below_objective(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    traceback.print_exception(kind, error, trace)


def _is_below_objective(file):
    return file.startswith("<frozen ") or file in (__file__, _sources.__file__, importlib.__file__)


def main():
    sys.excepthook = _show
    objective = load(sys.argv[1])
    trial = the_trial()
    try:
        value = objective(trial)
    except SystemExit as error:
        sys.exit(error.code)  # the trial takes its exit code from this call
    if value is None:
        return
    if hasattr(value, "item"):  # numpy's and torch's scalars
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise UsageError(f"the objective returned {value!r}: must be a number, or nothing after trial.report")
    trial.finish(float(value))


if __name__ == "__main__":
    main()
