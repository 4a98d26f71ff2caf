"""The trial as its program sees it."""
import atexit
import copy
import ctypes
import json
import os
import pathlib
import sys
import typing
import warnings
from collections.abc import Mapping

from espalier._exit import ProgramEnd
from espalier._plain_runtime import to_save
from espalier._runtime import runtime
from espalier.errors import UsageError

_the = None
_ABSENT = object()
_Parsed = typing.TypeVar("_Parsed")
_SHOWN = 80  # characters of a value
_MOST_STEP = 2**53  # every whole number up to it is a float


def of_process() -> "Trial":
    """That of this process, made at the first call. Its program asks _the_trial.py for it."""
    global _the
    if _the is None:
        _the = Trial()
    return _the


class _Parameters(Mapping):
    """The trial's parameters by name. Nested choices are flattened: for {"n": {"_name": "A", "p": 0.3}}, "n" is "A" and
    "n/A/p" is 0.3."""

    def __getitem__(self, name):
        value = runtime().parameters[name]
        runtime().library.ask(name)
        return value

    def __iter__(self):
        return iter(runtime().parameters)

    def __len__(self):
        return len(runtime().parameters)

    def __repr__(self):
        return repr(runtime().parameters)


class Trial:
    """One training run. `espalier.trial()` returns the one of this process. Use it from the thread that trains."""

    def __init__(self):
        if _the is not None:
            raise UsageError("a process has one trial: ask espalier.trial() for it")
        self._runtime = runtime()
        self._finished = False
        self._goes_on_later = False  # from what it was told to save: the end of the script is not the trial's
        self._last_step = 0  # that was reported
        self._has_warned = False
        self.parameters = _Parameters()
        self.result = None  # what a script that comes to its end finishes with, if not the last report
        self._hook_end()
        if self.elastic and hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(line_buffering=True)  # it is a file, which `tuner logs` follows

    # ---- what it is

    @property
    def number(self) -> int:
        """The trial's number in its study, from 0; 0 without an agent."""
        return self._runtime.facts.number

    @property
    def study(self) -> str | None:
        """The study's name; None without an agent."""
        return os.environ.get("ESPALIER_STUDY") if self._runtime.in_trial else None

    @property
    def directory(self) -> pathlib.Path:
        """The trial's own folder, a pathlib.Path, for files of the program; the working directory without an agent. All
        trials of a study have the same working directory."""
        return pathlib.Path(os.environ["ESPALIER_CHECKPOINT_DIR"]).parent if self._runtime.in_trial else pathlib.Path.cwd()

    @property
    def seed(self) -> int:
        """A seed that differs between trials, but not between a trial's replicas; a parameter "seed" overrides it."""
        return self._runtime.facts.seed

    @property
    def device(self):
        """The device for models and batches: the slot's GPU, or the CPU."""
        return self._runtime.device

    @property
    def elastic(self) -> bool:
        """Whether an agent started this process, so that replicas may come and go. Not without torch: such a trial has its
        parameters and reports, and stays on one slot."""
        return bool(self._runtime.facts.agent)

    def get(self, name: str, default: typing.Any = _ABSENT) -> typing.Any:
        """The parameter's value, or `default` if the study does not sweep it. It is converted to the type of `default`:
        an integer to a float, a float without a fraction to an integer; None stays None. Raises UsageError for any other
        type, and for a parameter that is neither swept nor has a default."""
        given = self._runtime.parameters
        self._runtime.library.ask(name)
        if name not in given:
            if default is _ABSENT:
                raise self._unknown(name)
            return default
        value = given[name]
        if default is _ABSENT or default is None or value is None or isinstance(value, bool) and isinstance(default, bool):
            return value
        if isinstance(default, bool) or isinstance(value, bool):
            raise _wrong_type(name, value, default)
        if isinstance(default, int) and isinstance(value, (int, float)) and float(value).is_integer():
            return int(value)
        if isinstance(default, float) and isinstance(value, (int, float)):
            return float(value)
        if isinstance(default, (list, tuple, dict)) and isinstance(value, str):
            read = json.loads(value)
            return tuple(read) if isinstance(default, tuple) else read
        if isinstance(default, str) and isinstance(value, str):
            return value
        raise _wrong_type(name, value, default)

    def arguments(self, parsed: _Parsed) -> _Parsed:
        """A copy of what the program's parser has returned, with the trial's parameters in place of the arguments of the
        same names: `arguments = espalier.trial().arguments(parser.parse_args())`. What was parsed is the default, and its
        type counts as in `get`."""
        try:
            given = vars(parsed)
        except TypeError as error:
            raise UsageError(f"arguments must be what parse_args() returns, not {parsed!r}, a "
                             f"{type(parsed).__name__}") from error
        taken = copy.copy(parsed)
        for name, value in given.items():
            setattr(taken, name, self.get(name, value))
        return taken

    def __getitem__(self, name: str) -> typing.Any:
        """`get` without a default."""
        return self.get(name)

    def _unknown(self, name):
        if not self._runtime.in_trial:
            return UsageError(f'parameter "{name}" was not given: run the program with --set {name}=VALUE, or write '
                              f'trial.get("{name}", DEFAULT)')
        return UsageError(f'the study has no parameter "{name}": it has {", ".join(self._runtime.parameters) or "none"}')

    # ---- what it says

    def report(self, step: int, value: typing.SupportsFloat, **extra: typing.SupportsFloat) -> None:
        """Reports one value of the study's metric, and further figures of the same step. Steps count from 1 and grow
        (usually they are epochs). Call it on every replica with the same values: one of them sends it. Of several processes
        that a launcher has started, any may call it: equal reports count once, and unlike ones are refused, unless the study
        says "ranks": "mean"."""
        self.report_beside(step, value, extra)

    def report_beside(self, step: int, value: typing.SupportsFloat, extra: Mapping[str, typing.SupportsFloat]) -> None:
        """The same, with further figures of whatever names, "step" and "value" among them."""
        step = _step(step)
        self._check_step(step)
        names = (ctypes.c_char_p * len(extra))(*[name.encode() for name in extra])
        values = (ctypes.c_double * len(extra))(*[_number(v, f'"{name}"') for name, v in extra.items()])
        self._runtime.library.report(step, _number(value, "the value"), names, values, len(extra))

    def should_stop(self, step: int) -> bool:
        """Whether the trial is to end after this step. Where a launcher has started several processes, the first that asks
        at a step fixes it for all: call it in all of them at the same steps, so that none leaves while another waits for it.
        They need not report. Always False of an elastic trial, whose replicas the tuner ends at a step of all of them, and
        of a program that runs alone."""
        ask = getattr(self._runtime.library, "should_stop", None)
        step = _step(step)
        return ask is not None and ask(step)

    def should_save(self, step: int) -> bool:
        """Whether the program is to save a checkpoint after this step and to end, with exit code 0, so that its trial goes on
        from there: on another number of slots (`"resize": "restart"`), on another machine, or when its study does. One that
        asks is not sent SIGTERM for that, unless it has not ended in time. Several processes of a launcher are answered alike,
        as by `should_stop`. Always False of an elastic trial, whose checkpoints are Espalier's, and of a program that runs
        alone."""
        step = _step(step)
        library = self._runtime.library
        if hasattr(library, "should_save"):
            is_to = library.should_save(step)
        else:  # where torch is, it may yet begin an elastic loop
            is_to = not self._runtime.joined and to_save(step)
        self._goes_on_later = self._goes_on_later or is_to
        return is_to

    def _check_step(self, step):
        """A step that is done again because a replica was lost may be reported again."""
        before, self._last_step = self._last_step, max(step, self._last_step)
        if self._finished:
            self._warn(f"step {step} was reported after the trial's end: report before finish() or fail()")
        elif 0 < step == before and not self._runtime.step_was_dropped():
            self._warn(f"step {step} was reported twice, and the first value counts: report further figures with it, as "
                       "report(step, value, loss=0.1)")
        elif 0 < step < before and not self._runtime.step_was_dropped():
            self._warn(f"step {step} was reported after step {before}: steps count from 1 and grow")

    def _warn(self, message):
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(message, stacklevel=5)

    def finish(self, value: typing.SupportsFloat | None = None) -> None:
        """Completes the trial; its result is `value` or, if that is not given, the last reported value. At the end of a
        script this happens by itself."""
        if self._finished:
            return
        self._finished = True
        number = None if value is None else ctypes.byref(ctypes.c_double(_number(value, "the result")))
        self._runtime.library.finish(number)

    def fail(self, reason: str) -> None:
        """Fails the trial; it is not restarted."""
        self._finished = True
        self._runtime.library.fail(str(reason).encode())

    def on_leave(self, call: typing.Callable[[], typing.Any]) -> None:
        """Registers a function to call before this process exits without Python's own shutdown, because its replica has
        left the group. Close writers and trackers in it."""
        self._runtime.on_leave.append(call)

    # ---- the end of the script

    def _hook_end(self):
        self._program_end = ProgramEnd()
        self._process = os.getpid()
        atexit.register(self._end)
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self):
        """A process that is forked, such as a DataLoader's worker, is no replica, and must not hold the agent's socket
        open."""
        self._runtime.library.refuse(
            f"this process was forked from the trial's (process {self._process}), which alone trains, reports and "
            "finishes: hand what is to be reported back to it, or ask for the trial in the forked process only")
        descriptor = os.environ.pop("ESPALIER_CONTROL_FD", None)
        if descriptor is not None:
            try:
                os.close(int(descriptor))
            except OSError:
                pass

    def _end(self):
        if os.getpid() != self._process:
            return
        code = self._program_end.code
        if self._goes_on_later:
            self._finished = True
        if not self._finished and (code == 0 or code is None and (self.result is not None or not self.elastic)):
            try:
                self.finish(self.result)
            except Exception:  # the interpreter ends; standard error is all that is left
                sys.excepthook(*sys.exc_info())
                code = 1
        if not self.elastic:
            return
        # Groups that were given up may still have threads in LibTorch, which must not see its end.
        self._runtime._before_exit()
        if code is None and not self._finished:
            self._program_end.leave_with_own_code()
        else:
            os._exit(code or 0)


def _number(value, what):
    """A tensor of the loss still belongs to a graph, and torch warns of what is converted then."""
    try:
        return float(value.detach() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        further = "; report further figures by name, as report(step, value, accuracy=0.9)" if isinstance(value, dict) else ""
        raise UsageError(f"{what} of a trial is {_shown(value)}: must be one number{further}") from error


def _step(value):
    wanted = "a whole number, as in report(step, value)"
    try:
        step = int(value)
        if step == value and step <= _MOST_STEP:
            return step
        if step == value:
            wanted = "at most 2**53"
    except (TypeError, ValueError, RuntimeError, OverflowError):
        pass
    raise UsageError(f"the step of a report is {_shown(value)}: must be {wanted}")


def _shown(value):
    text = " ".join(repr(value).split())
    return f"{text if len(text) <= _SHOWN else text[:_SHOWN - 3] + '...'}, a {type(value).__name__}"


def _wrong_type(name, value, default):
    remedy = f": a default of {float(default)} makes it a float" if _meant_as_float(value, default) else ""
    return UsageError(f'parameter "{name}" is {value!r}, and must be of type {type(default).__name__} here{remedy}')


def _meant_as_float(value, default):
    return isinstance(value, float) and isinstance(default, int) and not isinstance(default, bool)
