"""`--set name=value`, by which a program that runs alone is given parameters. Its trial takes them from the command line,
and what is left is for the program's own parser."""
import atexit
import os
import sys

from espalier import _exit

_OPTION = "--set"
_USAGE_ERROR = 2  # the exit code of argparse and others


def is_given():
    return _OPTION in sys.argv[1:]


def take():
    """Once the trial has read them."""
    while is_given():
        at = sys.argv.index(_OPTION, 1)
        del sys.argv[at:at + 2]


def explain_refusal():
    """Has it said at the end why the program's parser does not know the option, where it has come before the trial."""
    _exit.note_exits()
    atexit.register(_explain, os.getpid())


def _explain(process):
    if os.getpid() == process and is_given() and _exit.noted() == _USAGE_ERROR:
        print(f"espalier: espalier.trial() takes each {_OPTION} from the command line: call it before parse_args()",
              file=sys.stderr)
