"""Tests of elastic programs: a trial on this machine that is resized, and whose replicas are killed, when the test says so.

    with espalier.testing.start("train.py", {"lr": 0.1}, slots=(1, 4)) as trial:
        trial.wait_for_step(1)
        trial.resize(4)
        trial.kill()
        record = trial.wait()
    assert record["restarts"] == 0 and record["value"] > 0.9

It needs `tuner`, from Espalier's wheel or in PATH, and no pytest: any test runner will do.
"""
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import typing

from espalier import _objective, _rows, _run, _study_file
from espalier._runtime import NO_PARAMETER
from espalier.errors import EspalierError, StudyError, UsageError

__all__ = ["TrialUnderTest", "start"]

_LOOK_S = 0.05
_TOLD = 8000  # characters of each output
_STUDY = "under-test"


def start(objective: typing.Callable | str | os.PathLike | list[str], parameters: dict | None = None, *,
          slots: int | tuple[int, int] = (1, 2), metric: str = "value", direction: str = "minimize", timeout_s: float = 300.0,
          directory: str | os.PathLike | None = None, python: str | None = None, replica_lease_s: float = 60.0,
          **study: typing.Any) -> "TrialUnderTest":
    """Starts one trial with these parameters, and returns it as a TrialUnderTest: use it in a `with` statement.

    objective: as for `espalier.tune`: a function of the trial, the path of a script, or a command.
    parameters: {"lr": 0.1, ...}: numbers, strings, booleans.
    slots: the fewest and the most replicas. It starts with the fewest, and changes their number only if told to.
    timeout_s: how long `resize`, `kill` and the `wait` methods wait, in seconds.
    directory: where logs and checkpoints are kept (default: a temporary folder, removed at the end).
    replica_lease_s: a replica that is not heard of for so long, in seconds, counts as hung and is killed; 0: never. More
        than an agent's own default, so that a machine which stands still for a moment costs no test a replica.
    metric, direction, python and further keywords: as for `espalier.tune`, such as max_restarts=0.

    Raises UsageError for what cannot be run; if the study itself is wrong, the first wait does.
    """
    study = _study_file.keys_given(study, {
        "command": "start takes it as objective", "search_space": "start takes the trial's parameters",
        "trials": "start runs one trial", "sampler": "start takes the trial's parameters",
        "name": "the study of a test is named by itself"})
    low, high = _bounds(slots)
    given = dict(parameters or {NO_PARAMETER: 0})
    space = {name: {"_type": "choice", "_value": [value]} for name, value in given.items()}
    python = python or sys.executable
    spec = {"directory": os.getcwd(), "policy": "fixed", **study, "name": _STUDY,
            "metric": {"name": metric, "direction": direction}, "search_space": space, "sampler": "random", "trials": 1,
            "slots": {"min": low, "max": high}}
    spec = _run.json_of(spec)
    command = _objective.command_of(objective, python)
    sent = _objective.pickled(objective) if command is None else None
    tuner = _run.tuner_program()
    kept = directory is not None
    folder = pathlib.Path(directory if kept else tempfile.mkdtemp(prefix="espalier-test-")).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        spec["command"] = command or _objective.in_file(sent, python, folder)
        run = _run.LocalRun(tuner, spec, folder, ["--slots", str(high), "--replica-lease", str(replica_lease_s), "--fresh"])
    except BaseException:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return TrialUnderTest(run, (low, high), timeout_s, kept)


class TrialUnderTest:
    """A trial that `start` has started. It ends, with all its processes, when the `with` block or this process does."""

    def __init__(self, run: _run.LocalRun, slots: tuple[int, int], timeout_s: float, kept: bool) -> None:
        self._run = run
        self._slots = slots
        self._timeout_s = timeout_s
        self._kept = kept
        self._record = None  # once it has ended

    def __enter__(self) -> "TrialUnderTest":
        return self

    def __exit__(self, kind: typing.Any, error: typing.Any, traceback: typing.Any) -> None:
        """Ends it. What the trial did goes to stderr first where the block has raised, unless the error tells it."""
        try:
            if error is not None and not isinstance(error, EspalierError):
                self._tell()
        finally:
            self.close()

    @property
    def directory(self) -> pathlib.Path:
        """Folder with the logs, checkpoints and database, until `close`."""
        return self._run.directory

    def record(self) -> dict | None:
        """The trial as `espalier.Client` shows it, with its curve ("values") and its "resizes"; None while it has not
        been created."""
        if self._record is None and self._run.ended(0):
            trials = self._run.details()["trials"]
            if not trials:
                raise EspalierError("the study has ended before its trial was created")
            self._record = trials[0]
        if self._record is not None:
            return self._record
        details = self._run.look(values=True)
        return next(iter(details["trials"]), None) if details else None

    def processes(self) -> list[int]:
        """The process ids of its replicas, the oldest replica first."""
        details = None if self._record is not None else self._run.look()
        if not details:
            return []
        holders = [holder for node in details["pool"]["nodes"] for holder in node["holders"]
                   if holder["study"] == _STUDY and holder["pid"] > 0]
        return [holder["pid"] for holder in sorted(holders, key=lambda holder: holder["replica_id"])]

    def output(self) -> str:
        """What its replicas have printed so far."""
        return _rows.output(self.directory, _STUDY, 0)

    def wait_for_step(self, step: int) -> dict:
        """Waits until it has reported `step` or a later one, and returns its record."""
        return self._until(lambda trial: trial["step"] >= step, f"report step {step}")

    def resize(self, replicas: int) -> dict:
        """Has it train on that many replicas, waits until it does, and returns its record."""
        low, high = self._slots
        if not isinstance(replicas, int) or not low <= replicas <= high:
            raise UsageError(f"replicas {replicas!r}: must be {low} to {high}, the slots that the trial was started with")
        wanted = f"train on {replicas} replica{'s' if replicas > 1 else ''}"
        self._until(_trains, wanted)  # a group that has not formed yet would be replaced without a resize
        self._run.service.pin(_STUDY, 0, replicas)
        return self._until(lambda trial: _trains(trial) and _size(trial, low) == replicas, wanted)

    def kill(self, index: int = 0, signal_number: int = signal.SIGKILL) -> dict:
        """Kills one replica (0: the oldest), waits until the others train on without it, or the trial is restarted if
        there are none, and returns its record. The replica is replaced afterwards."""
        before = _losses(self._until(_trains, "train"))
        there = self.processes()
        if not 0 <= index < len(there):
            raise UsageError(f"index {index}: the trial has {len(there)} replicas")
        os.kill(there[index], signal_number)
        return self._until(lambda trial: _losses(trial) > before and _trains(trial), "go on without the replica")

    def wait(self, check: bool = True) -> dict:
        """Waits until it has ended, and returns its record. With `check`, raises StudyError if it failed, with its
        output."""
        record = self._until(lambda trial: self._record is not None, "end")
        if check and record["state"] == "TRIAL_FAIL":
            raise StudyError(f"the trial has failed: {record['reason']}\n{record['last_output'].strip()}")
        return record

    def close(self) -> None:
        """Ends what still runs, and removes a temporary folder."""
        self._run.close()
        if not self._kept:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _tell(self):
        record = dict(self.record() or {})
        record.pop("values", None)
        print(f"the trial under test, in {self.directory}:\n{json.dumps(record, indent=1)}\n"
              f"--- what `tuner run` has said\n{self._run.said()[-_TOLD:]}\n"
              f"--- what the trial has printed\n{self.output()[-_TOLD:]}", file=sys.stderr)

    def _until(self, holds, what):
        end = time.monotonic() + self._timeout_s
        while True:
            trial = self.record()
            if trial is not None and holds(trial):
                return trial
            if self._record is not None:
                why = "let it train longer" if trial["state"] == "TRIAL_COMPLETE" else trial["reason"]
                raise EspalierError(f"the trial was to {what}, and has ended before, in state "
                                    f"{_rows.plain_state(trial['state'])} after step {trial['step']}: {why}\n{self.output()}")
            if time.monotonic() > end:
                raise EspalierError(f"the trial did not {what} within {self._timeout_s:g} s\n{self.output()}")
            time.sleep(_LOOK_S)


def _trains(trial):
    return trial["state"] == "TRIAL_RUNNING" and trial["generation"] > 0


def _size(trial, first):
    return trial["resizes"][-1]["to_replicas"] if trial["resizes"] else first


def _losses(trial):
    return trial["restarts"] + sum(resize["after_loss"] for resize in trial["resizes"])


def _bounds(slots):
    try:
        low, high = slots
    except TypeError:
        low = high = slots
    except ValueError:
        low, high = None, None
    if not (isinstance(low, int) and isinstance(high, int) and 1 <= low <= high):
        raise UsageError(f"slots {slots!r}: must be a number of replicas, or the fewest and the most, such as (1, 4)")
    return low, high
