"""Whoever reads the output of a command may leave before its end, as `| head` does."""
import contextlib
import os
import select
import sys

_BROKEN_PIPE = 141  # what a shell says of a program that SIGPIPE has ended


@contextlib.contextmanager
def reader_may_leave():
    """Ends the program in silence when its reader has left."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_has_left():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_BROKEN_PIPE)


def _reader_has_left():
    """The pipe that broke may be another one, or a socket."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
