"""The command `tuner` of an installed wheel: becomes the program that is in it."""
import os
import pathlib
import signal
import sys

PROGRAM = pathlib.Path(__file__).resolve().parent / "bin" / "tuner"


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the program would inherit that
    try:
        os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"tuner: cannot start {PROGRAM} ({error.strerror}): this espalier was not installed from a wheel "
                 "for this machine; see docs/python_install.md")
