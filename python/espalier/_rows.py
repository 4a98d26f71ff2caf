"""A study's trials as rows, with the columns of `tuner export`: lists of dicts, or pandas' DataFrames of them."""
from espalier._errors import UsageError

_STEP = ("step", "value", "at_s", "global_batch_size", "slots")
_TRIAL = ("final_value", "started_s", "ended_s", "slot_seconds", "restarts", "reason")
_OWN = frozenset(("trial", "state", *_STEP, *_TRIAL))
_ENDED = ("TRIAL_COMPLETE", "TRIAL_PRUNED", "TRIAL_FAIL")


def plain_state(state):
    """"COMPLETE" of "TRIAL_COMPLETE"."""
    return state.partition("_")[2]


def has_ended(trial):
    return trial["state"] in _ENDED


def trial_rows(details):
    """One row a trial of a study's details."""
    return _rows(details, lambda trial: [{"step": trial["step"] or None}], ("step",), ())


def step_rows(details):
    """One row a trial and step that it has reported; a trial without a report has one, too."""
    figures = sorted({name for trial in details["trials"] for value in trial["values"] for name in value["extra"]})
    created = details["study"]["created_at"]

    def steps(trial):
        for value in trial["values"]:
            yield {"step": value["step"], "value": value["value"], "at_s": value["at"] - created,
                   "global_batch_size": value["batch_size"] or None, "slots": _slots_at(trial, value["at"]),
                   **{f"extra.{name}": figure for name, figure in value["extra"].items()}}
        if not trial["values"]:
            yield {}

    return _rows(details, steps, _STEP, [f"extra.{name}" for name in figures])


def _rows(details, parts, own, figures):
    created, trials, last = details["study"]["created_at"], details["trials"], _last_moment(details)
    names = dict.fromkeys(name for trial in trials for name in trial["parameters"])
    constrained = bool(details["study"]["constraints"])
    own_names = _OWN | {"infeasible"} if constrained else _OWN
    columns = {name: f"parameter.{name}" if name in own_names else name for name in names}
    further = max((len(trial["other_values"]) for trial in trials), default=0)
    rows = []
    for trial in trials:
        given = {column: trial["parameters"].get(name) for name, column in columns.items()}
        others = trial["other_values"] if has_ended(trial) else []
        end = {"final_value": trial["value"] if has_ended(trial) else None,
               **{f"final_value_{i + 2}": others[i] if i < len(others) else None for i in range(further)},
               "started_s": trial["started_at"] - created if trial["started_at"] else None,
               "ended_s": trial["ended_at"] - created if trial["ended_at"] else None,
               "slot_seconds": sum(((span["to"] or last) - span["from"]) * len(span["slots"])
                                   for span in trial["spans"]),
               "restarts": trial["restarts"], "reason": trial["reason"],
               **({"infeasible": trial["infeasible"]} if constrained else {})}
        for part in parts(trial):
            blank = dict.fromkeys((*own, *figures))
            rows.append({"trial": trial["number"], "state": plain_state(trial["state"]), **given, **blank, **part,
                         **end})
    return rows


def _last_moment(details):
    moments = [details["study"]["ended_at"], details["study"]["created_at"]]
    moments += [decision["at"] for decision in details["decisions"]]
    for trial in details["trials"]:
        moments += [trial["ended_at"], trial["started_at"], *(value["at"] for value in trial["values"])]
        moments += [at for span in trial["spans"] for at in (span["from"], span["to"])]
    return max(moments)


def _slots_at(trial, at):
    for span in trial["spans"]:
        if span["from"] <= at and (not span["to"] or at <= span["to"]):
            return len(span["slots"])
    return 0


def log_files(directory, study, number):
    """Of a trial of a run in that folder: what its replicas have printed, the oldest replica first. A replica in a process
    that has been one before writes to that one's log, to which its own is a link."""
    found = (directory / "trials" / study / f"trial-{number}").glob("replica-*.log")
    return sorted((path for path in found if not path.is_symlink()), key=lambda path: int(path.stem.partition("-")[2]))


def output(directory, study, number):
    return "".join(path.read_text(errors="replace") for path in log_files(directory, study, number))


def dataframe(rows):
    try:
        import pandas
    except ImportError as error:
        raise UsageError("a DataFrame needs pandas, which is not installed: pip install pandas; a Result's rows() and a "
                         "Client's export() have the same as lists of dicts") from error
    return pandas.DataFrame(rows)
