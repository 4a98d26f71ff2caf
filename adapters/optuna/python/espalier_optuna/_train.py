"""Elastic trials on the pool, inside objectives of Optuna's."""
from __future__ import annotations

from collections.abc import Callable, Sequence
import hashlib
import json
import logging
import os
import pathlib
import re
import sys
import time
from typing import Any
import uuid

import grpc
import optuna
from optuna.storages import BaseStorage

from espalier_optuna import _messages
from espalier_optuna._slots import channel_of

CALL_S = 60.0  # that an answer may take
POLL_S = 0.2
WRITE_S = 10.0  # of no report, after which Optuna's trial is written to nevertheless
LOOK_S = 10.0  # between two looks at the pool's study, while a trial does not run
MOST_NAME = 100  # characters of a study's name that come from Optuna's
OUTPUT_BYTES = 2000  # of a failed trial's, in the exception
WAITING, RUNNING, PAUSED, COMPLETE, PRUNED, FAIL = range(1, 7)  # espalier.v1.TrialState
STUDY_STOPPED = 2  # espalier.v1.StudyState

_logger = logging.getLogger("espalier_optuna")


class TrainError(RuntimeError):
    """The pool's trial has failed, or the service would not have it."""


def train(trial: optuna.Trial, objective: Callable[..., Any] | str | os.PathLike[str] | Sequence[str],
          slots: int | tuple[int, int | None] = (1, None), *, parameters: dict[str, Any] | None = None,
          service: BaseStorage | None = None, directory: str | os.PathLike[str] | None = None,
          python: str | None = None, **study: Any) -> float:
    """Runs a trial on the pool with the parameters that Optuna's trial has been suggested so far, and returns its value.

    The pool resizes it between the given numbers of slots while it trains. What it reports is reported to Optuna's trial;
    where Optuna's pruner says so it is stopped, and `optuna.TrialPruned` is raised. An exception in the program that waits
    here, such as Ctrl-C, stops it too. All trials of one study of Optuna's with the same objective and options are in one
    study of the pool, named after Optuna's.

    Args:
        trial: of a study with one objective, on an Espalier service by :func:`storage` or Optuna's own `GrpcStorageProxy`.
        objective: a script (NAME.py), a command as one text or a list of words, or a function of an
            `espalier.Trial`, which is called on each replica. An elastic one trains by `espalier.torch`, or is a program
            in C++; others use one slot.
        slots: how many, or (least, most); most None: as many as the pool has.
        parameters: instead of `trial.params`.
        service: a storage on the Espalier service, for a study that is kept elsewhere.
        directory: where the trial runs; None: this process's.
        python: the interpreter of scripts and functions on the pool's machines, which has PyTorch where it is needed; None:
            the path of this one.
        **study: further keys of a study file, such as env={...}, share=2, batch_mode="adaptive".

    Raises:
        optuna.TrialPruned: Optuna's pruner has ended the trial, or somebody has on the pool's side.
        TrainError: it has failed; the message says why, and has the end of its output.
    """
    least, most = (slots, slots) if isinstance(slots, int) else slots
    if not 1 <= least <= (most or least):
        raise ValueError(f"slots is {slots!r}: must be a number, or (least, most) with 1 <= least <= most")
    if len(trial.study.directions) != 1:
        raise ValueError("train: the study has several objectives, and a trial of the pool has one value")
    channel = channel_of(trial.storage if service is None else service, "service=espalier_optuna.storage(...)")
    definition = {"metric": {"name": "value", "direction": trial.study.direction.name.lower()}, "sampler": "queue",
                  # Optuna decides what to make of failures.
                  "max_consecutive_failures": 1_000_000_000, **study,
                  "slots": {"min": least, **({} if most is None else {"max": most})}}
    definition["command"] = _command(objective, python or sys.executable, definition)
    directory = os.path.abspath(os.getcwd() if directory is None else directory)
    try:
        pool = _PoolTrial(channel, _named(trial.study.study_name, definition, directory), directory, trial,
                          trial.params if parameters is None else parameters)
    except grpc.RpcError as error:
        raise TrainError(f"trial {trial.number}: {error.details()}") from error
    trial.set_user_attr("espalier", pool.name)
    return pool.follow(trial)


def _command(objective, python, definition) -> list[str] | str:
    if callable(objective):
        return _call_of(objective, python, definition)
    if isinstance(objective, (list, tuple)):
        return [os.fspath(word) for word in objective]
    path = pathlib.Path(objective)
    if path.suffix == ".py" and path.is_file():
        return [python, str(path.absolute())]
    return os.fspath(objective)  # split by the service, as a shell quotes words


def _call_of(function, python, definition) -> list[str]:
    """The command that calls it; what the function is goes along in the environment if nothing can import it."""
    try:
        from espalier import _objective
    except ImportError as error:
        raise TypeError(f"train: {function!r} is a function, which needs the package espalier here and on the pool's "
                        "machines: install it, or give a script or a command") from error
    command = _objective.command_of(function, python)
    if command is None:
        command = _objective.in_environment(_objective.pickled(function), python, definition)
    definition["env"] = {"PYTHONPATH": _objective.search_path(), **definition.get("env", {})}
    return command


def _named(optuna_name, definition, directory):
    """With a name that tells Optuna's study, and is another one where the definition is."""
    text = json.dumps([definition, directory], sort_keys=True)
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", optuna_name)[:MOST_NAME]
    return {"name": f"optuna-{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}", **definition}


class _PoolTrial:
    """The pool's trial for one of Optuna's."""

    def __init__(self, channel, definition, directory, trial, parameters):
        def call(name, reply):
            unary = channel.unary_unary(f"/espalier.v1.Tuner/{name}",
                                        request_serializer=lambda message: message.SerializeToString(),
                                        response_deserializer=reply.FromString)
            return lambda request: unary(request, timeout=CALL_S)

        record = _messages.TrialRecord
        self._get = call("GetTrial", record)
        self._cancel = call("CancelTrial", record)
        self._output = call("GetTrialOutput", _messages.TrialOutput)
        self._get_study = call("GetStudy", _messages.StudyDetails)
        study = call("CreateStudy", _messages.Study)(_messages.CreateStudyRequest(
            study_json=json.dumps(definition), directory=directory, exist_ok=True))
        whose = {"optuna_study": trial.study.study_name, "optuna_trial": trial.number}
        queued = call("Enqueue", record)(_messages.EnqueueRequest(
            study=study.name, parameters=json.dumps(parameters), request_key=str(uuid.uuid4()),
            user_attributes=[_messages.TextByName(key=key, value=json.dumps(value)) for key, value in whose.items()]))
        self._id = queued.trial_id
        self._study = study.name
        self._stopped = False
        self.name = f"{study.name}/{queued.number}"

    def follow(self, trial: optuna.Trial) -> float:
        """Until its end, reporting on the way."""
        try:
            return self._wait(trial)
        except optuna.TrialPruned:
            self._stop(PRUNED, f"Optuna's pruner ended trial {trial.number}")
            raise
        except TrainError:
            raise
        except BaseException as error:
            self._stop(FAIL, f"the program of Optuna's trial {trial.number} has ended ({type(error).__name__})")
            raise

    def _wait(self, trial):
        reported = set()
        written = looked = time.monotonic()
        while True:
            try:
                record = self._get(_messages.TrialId(trial_id=self._id))
            except grpc.RpcError as error:
                raise TrainError(f"{self.name}: {error.details()}") from error
            for point in record.intermediate_values:
                if point.step not in reported:
                    reported.add(point.step)
                    trial.report(point.value, point.step)
                    written = time.monotonic()
            if record.state == COMPLETE:
                if not record.values:
                    raise TrainError(f"{self.name} has ended without a value")
                return record.values[0]
            if record.state == PRUNED:
                raise optuna.TrialPruned(f"{self.name} was ended: {record.reason}")
            if record.state == FAIL:
                raise TrainError(f"{self.name} has failed: {record.reason}{self._last_words()}\n"
                                 f"all of its output: tuner logs {self._study} {record.number}")
            if reported and trial.should_prune():
                raise optuna.TrialPruned(f"at step {max(reported)}")
            if time.monotonic() - written >= WRITE_S:
                # A service with --client-lease ends trials whose programs are silent, and this one only waits.
                trial.set_user_attr("espalier", self.name)
                written = time.monotonic()
            if record.state in (WAITING, PAUSED) and time.monotonic() - looked >= LOOK_S:
                self._warn_if_stopped()
                looked = time.monotonic()
            time.sleep(POLL_S)

    def _warn_if_stopped(self):
        """Once each time that the study is stopped."""
        try:
            study = self._get_study(_messages.GetStudyRequest(name=self._study, active_only=True, without_values=True)).study
        except grpc.RpcError:
            return  # a service that is gone, or a study that is, ends the wait at its next turn
        stopped = study.state == STUDY_STOPPED
        if stopped and not self._stopped:
            _logger.warning("%s waits: study %s is stopped, and `tuner resume %s` lets it go on", self.name, self._study,
                            self._study)
        self._stopped = stopped

    def _last_words(self):
        try:
            text = self._output(_messages.TrialOutputRequest(trial_id=self._id, max_bytes=OUTPUT_BYTES)).text
        except grpc.RpcError:
            return ""
        return "\n" + text.decode(errors="replace").strip() if text.strip() else ""

    def _stop(self, state, reason):
        try:
            self._cancel(_messages.CancelTrialRequest(trial_id=self._id, state=state, reason=reason))
        except (grpc.RpcError, ValueError) as error:
            # Also where it has just come to its end. What is raised here must not take the place of what was.
            _logger.warning("%s could not be stopped: %s", self.name, error)
