"""Becomes the program in its arguments, which gets a signal when the process with the given id ends, however that goes: a
`tuner run` stops its trials then.

usage: _child.py SIGNAL PARENT_PID PROGRAM ARGUMENT..."""
import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1


def main():
    number, parent, program, *arguments = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != int(parent):  # it has gone before it could be followed
        sys.exit(130)
    try:
        os.execv(program, [program, *arguments])
    except OSError as error:
        sys.exit(f"cannot start {program}: {error.strerror}")


if __name__ == "__main__":
    main()
