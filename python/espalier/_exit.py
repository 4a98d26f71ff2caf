"""How the program of this process ends. An exception that is not caught goes through sys.excepthook, but SystemExit does
not, and the interpreter keeps its code to itself."""
import ctypes
import dis
import sys
import threading

_exit = None  # sys.exit, once its calls are noted
_noted = None  # what it was last called with, as an exit code


def note_exits():
    """From here on it is known what sys.exit was called with. `sys.exit(main())` looks it up before main() runs, so this
    is for when the package is imported."""
    global _exit
    if _exit is None:
        _exit, sys.exit = sys.exit, _note


def _note(status=None, /):
    global _noted
    if threading.current_thread() is threading.main_thread():  # others end only their thread
        _noted = 0 if status is None else status & 0xff if isinstance(status, int) else 1
    _exit(status)


def noted():
    """What sys.exit was last called with, as an exit code; None: it was not called."""
    return _noted


class ProgramEnd:
    """Watches for the end from when it is made. What it says is true once the interpreter calls what was registered by
    atexit."""

    def __init__(self):
        self._raised = False  # anything but SystemExit
        self._shown = sys.excepthook
        self._outermost = sys._current_frames().get(threading.main_thread().ident)
        while self._outermost is not None and self._outermost.f_back is not None:
            self._outermost = self._outermost.f_back
        sys.excepthook = self._show
        note_exits()

    @property
    def code(self):
        """The exit code; None: the program has raised SystemExit without sys.exit, and only the interpreter knows."""
        if self._raised:
            return 1
        return _noted if self._left_by_exception() else 0

    def leave_with_own_code(self):
        """Has the process end with the interpreter's exit code before exit handlers of its libraries run."""
        libc = ctypes.CDLL(None)
        libc.on_exit(libc._exit, None)

    def _show(self, kind, error, trace):
        self._raised = True
        self._shown(kind, error, trace)

    def _left_by_exception(self):
        """Whether the outermost frame has ended otherwise than by returning: a SystemExit that is caught changes
        nothing."""
        frame = self._outermost
        return frame is not None and not dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN")
