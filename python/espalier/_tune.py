"""`espalier.tune`: a study from a script or a notebook."""
import functools
import itertools
import os
import shutil
import sys
import typing
import warnings

from espalier import _display, _objective, _run, _study_file
from espalier._result import Result
from espalier.client import Client
from espalier.errors import StudyError, UsageError

_LOOK_S = 0.5


class _Name(typing.NamedTuple):
    given: str | None
    otherwise: str

    def candidates(self):
        yield self.otherwise
        yield from (f"{self.otherwise}-{n}" for n in itertools.count(2))


def tune(objective: typing.Callable | str | os.PathLike | list[str], space: dict | str | os.PathLike, *,
         metric: str | dict | list = "value", direction: str = "minimize", trials: int | None = None,
         time_limit_s: float | None = None, target: float | None = None, sampler: str | dict | None = None,
         pruner: str | dict | None = None, policy: str | dict | None = None, seed: int | None = None,
         points: list[dict] | None = None, fixed: dict | None = None, constraints: list[str] | None = None,
         slots: int | None = None, min_slots: int | None = None, max_slots: int | None = None,
         name: str | None = None, directory: str | os.PathLike | None = None, fresh: bool = False, show: bool = True,
         address: str | None = None, token_file: str | os.PathLike | None = None,
         tls_ca: str | os.PathLike | None = None, python: str | None = None, **study: typing.Any) -> Result:
    """Runs a study until it ends, shows its trials meanwhile, and returns its Result.

    objective: a function of the trial (`espalier.trial()`) that reports values, returns the final one, or both; or the
        path of a script; or a command, as one string or a list of words, in which {lr} is the trial's value of the
        parameter (docs/existing_scripts.md). Each replica of a trial is a process of its own that runs it.
    space: {"lr": space.loguniform(1e-5, 1), ...}, in NNI's format (docs/search_spaces.md); or the path of such a JSON
        file.
    metric, direction: the name of what is reported, and whether to "minimize" or "maximize" it. Of a command, metric
        may be {"name": "loss", "from_output": "loss=([0-9.]+)"}: values are read from what it prints. A list of metrics,
        by names or as {"name": ..., "direction": ...}, is several objectives (docs/objectives.md): trials report the
        first as the value and the others as figures beside it, and the Result has a `front`.
    trials, time_limit_s, target: what ends the study; so does terminator={"name": "stagnation", "trials": 30},
        {"name": "regret", "error": 0.002} or "emmr", once more trials would gain little (docs/allocation.md).
    sampler, pruner, policy: a name, or {"name": ..., option: value} (`tuner plugins` lists them).
    points: [{"lr": 1e-3}, ...]: parameters of the first trials, before the sampler is asked; what one does not name is
        drawn. fixed: {"lr": 1e-3}: parameters that all trials have, while the sampler searches the others.
        prior={"lr": 1e-3}: where good values are expected; like="earlier": a study from whose trials the sampler learns,
        too (docs/samplers.md).
    constraints: ["latency_ms <= 20", ...]: bounds on figures that trials report beside the value, each <= or >=. The best
        trial, and those of the front, keep to all of them (docs/objectives.md).
    slots: slots of this machine (default: its GPUs, else its CPU cores). min_slots, max_slots: those of one trial.
    name, directory: the study's name, and its folder (default: a new one in espalier-runs). Those of an earlier run of
        the same study continue it, unless `fresh`.
    show: whether to show the trials.
    address: HTTP address of a service, which then runs the study in its pool; token_file and tls_ca are as for Client.
    python: the interpreter of the trials (default: this one).
    Other keywords are keys of a study file (tuner/study_file/README.md), such as max_step=30, batch_mode="adaptive".

    Ctrl-C stops the study cleanly: trials save what they can, and the result so far is returned, in state STOPPED. A
    second Ctrl-C raises KeyboardInterrupt. Raises UsageError for a study that cannot be run, and StudyError if the
    study fails or none of its trials gets a value, with the output of the last failed trial.
    """
    if address is not None and (slots is not None or directory is not None or fresh):
        raise UsageError("slots, directory and fresh are of a study of this machine: leave them out, or the address")
    if address is None and (token_file is not None or tls_ca is not None):
        raise UsageError("token_file and tls_ca are for a service: name its address, or leave them out")
    study = _study_file.keys_given(study, {"command": "tune takes it as objective", "search_space": "tune takes it as space"})
    called = _Name(name, _objective.name_of(objective))
    python = python or sys.executable
    spec = _study(space, metric, direction, min_slots, max_slots, study, trials=trials, time_limit_s=time_limit_s,
                  target=target, sampler=sampler, pruner=pruner, policy=policy, seed=seed, points=points, fixed=fixed,
                  constraints=constraints)
    spec = _run.json_of(spec)
    command = _objective.command_of(objective, python)
    sent = _objective.pickled(objective) if command is None else None
    earlier = None  # what an earlier run has left of the study
    if address is not None:
        spec["command"] = command or _objective.in_environment(sent, python, spec)
        service = Client(address, token_file=token_file, tls_ca=tls_ca)
        run = _run.ServiceRun(_run.submitted(called, spec, service), service)
    else:
        tuner = _run.tuner_program()
        folder, spec["name"], is_new = _run.folder_for(called, directory)
        undo = functools.partial(shutil.rmtree, folder) if is_new else _run.FormerFiles(folder).put_back
        if not is_new and not fresh:
            earlier = _run.earlier_study(tuner, folder, spec["name"])
        if earlier is not None and command is None and _objective.is_another_version(objective, folder):
            _say_another_version(earlier, folder)
        spec["command"] = command or _objective.in_file(sent, python, folder)
        options = [*(["--slots", str(slots)] if slots is not None else []), *(["--fresh"] if fresh else [])]
        run = _run.LocalRun(tuner, spec, folder, options, undo)
    return _finish(run, _display.display_for(show), earlier)


def _say_another_version(earlier, folder):
    """A study that is over would return what the former function came to; another one goes on with this function."""
    told = f'study "{earlier["name"]}" in {folder} was run with another version of this function'
    if _run.is_over(earlier):
        raise UsageError(f"{told}: fresh=True starts over, another name keeps both")
    warnings.warn(f"{told}, and goes on with this one: fresh=True starts over", stacklevel=3)


def _finish(run, display, earlier):
    try:
        try:
            if earlier is not None and not _run.is_over(earlier):
                display.say(_run.goes_on(earlier))
            _run.follow(run, display, _LOOK_S)
            details = run.details()
            display.page = run.page(details)
            display.begin(run.heading(details))
            display.show(details)
            display.leave(run.record())
        finally:
            display.finish()
    finally:
        run.close()
    result = Result(details, run.directory)
    had_ended = _run.had_ended(earlier, result.study)
    if had_ended:
        display.say(f'study "{result.name}" had already ended: these are its results (fresh=True starts over)')
    if result.study["notice"]:
        display.say(f"note: {result.study['notice']}")
    if result.state == "STOPPED":
        display.say(f"stopped; {run.how_to_go_on()}")
    _raise_failure(result, had_ended)
    return result


def _study(space, metric, direction, min_slots, max_slots, keys, **absent_or_given):
    if isinstance(metric, list):
        if direction != "minimize":
            raise UsageError(f'direction {direction!r}: is of one metric; in a list each has its own: {{"name": ..., '
                             f'"direction": {direction!r}}}')
        told = metric
    else:
        told = {"direction": direction, **(metric if isinstance(metric, dict) else {"name": metric})}
    spec = {"metric": told, **keys, "search_space": space,
            **{key: value for key, value in absent_or_given.items() if value is not None}}
    if isinstance(space, (str, os.PathLike)):
        spec["search_space"] = os.path.abspath(space)
    elif not isinstance(space, dict):
        raise UsageError(f"space {space!r}: must be a dict of parameters, such as "
                         '{"lr": {"_type": "loguniform", "_value": [1e-5, 1]}}, or the path of a file with one')
    if min_slots is not None or max_slots is not None:
        spec["slots"] = {key: value for key, value in (("min", min_slots), ("max", max_slots)) if value is not None}
    spec["directory"] = os.path.abspath(keys.get("directory", ""))
    return spec


def _raise_failure(result, had_ended):
    """Where the study has failed, or all of its trials have."""
    failed = [trial for trial in result.trials if trial["state"] == "TRIAL_FAIL"]
    any_breaks = any(trial["state"] == "TRIAL_COMPLETE" and trial["infeasible"] for trial in result.trials)
    none_has_a_value = result.state == "COMPLETE" and result.best_trial is None and not result.front and failed and not any_breaks
    if result.state != "FAILED" and not none_has_a_value:
        return
    told = result.study["reason"] if result.state == "FAILED" else "none of its trials came to a value"
    earlier = " in an earlier run (fresh=True starts over)" if had_ended else ""
    message = f'study "{result.name}" has failed{earlier}: {told}'
    if failed:
        last = failed[-1]
        printed = last["last_output"].strip()
        message += f"\ntrial {last['number']}: {last['reason']}" + (f"\n{printed}" if printed else "")
        logs = result.log_files(last["number"])
        if logs:
            message += f"\nall of its output: {logs[-1]}"
    raise StudyError(message, result)
