"""Calls of Ray's, which may hang where a part of the cluster is unwell, and the end of a process that has made some."""
import concurrent.futures
import contextlib
import os
import sys
import threading
import time
import traceback

_LEAVE_S = 10  # for Ray to let go of a program that ends


class BoundedCalls:
    """Each call is waited for so long at most. One that hangs goes on in a thread of its own, and until it has ended no
    other of its name is begun. From any thread."""

    def __init__(self, limit_s):
        self._limit_s = limit_s
        self._changed = threading.Condition()
        self._under_way = set()

    def call(self, name, function, *arguments):
        """What the function returns or raises; TimeoutError where it does not in time."""
        end = time.monotonic() + self._limit_s
        with self._changed:
            if not self._changed.wait_for(lambda: name not in self._under_way, self._limit_s):
                raise self._too_late(name)
            self._under_way.add(name)
        outcome = concurrent.futures.Future()
        threading.Thread(target=self._run, args=(name, outcome, function, arguments), daemon=True).start()
        if not concurrent.futures.wait([outcome], max(0, end - time.monotonic())).done:
            raise self._too_late(name)
        return outcome.result()

    def _run(self, name, outcome, function, arguments):
        try:
            result = function(*arguments)
        except BaseException as error:  # raised again where it is waited for
            outcome.set_exception(error)
        else:
            outcome.set_result(result)
        finally:
            with self._changed:
                self._under_way.discard(name)
                self._changed.notify_all()

    def _too_late(self, name):
        return TimeoutError(f"no answer to {' '.join(name)} within {self._limit_s:g} s")


def leave(program, end):
    """Ends this process with the exit code that `end()` returns or exits with, whatever of Ray then hangs."""
    code = 1
    try:
        code = _code_of(end)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
    ray = sys.modules.get("ray")
    if ray is None:
        sys.exit(code)
    late = threading.Timer(_LEAVE_S, _exit, (code, f"{program}: Ray has not let go of it within {_LEAVE_S:g} s"))
    late.daemon = True
    late.start()
    with contextlib.suppress(Exception):
        ray.shutdown()
    # What hangs in a thread would also be waited for at the interpreter's end.
    _exit(code)


def _code_of(end):
    try:
        return end()
    except SystemExit as error:
        if isinstance(error.code, int) or error.code is None:
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1


def _exit(code, message=None):
    for told, stream in ((message, sys.stderr), (None, sys.stdout)):
        with contextlib.suppress(OSError, ValueError):
            if told is not None:
                print(told, file=stream)
            stream.flush()
    os._exit(code)
