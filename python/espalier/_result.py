"""What `espalier.tune` returns."""
import pathlib
import typing

from espalier import _display, _rows
from espalier._errors import NotFoundError, UsageError

if typing.TYPE_CHECKING:
    import pandas


class Result:
    """A study that has ended, or was stopped. Trials are dicts like those of `espalier.Client`, with their curves."""

    def __init__(self, details, directory=None):
        self._details = details
        self.directory = directory  # database, trials' logs and report.html; None: a service ran the study

    @property
    def study(self) -> dict:
        """The study, with the keys of `espalier.Client.study`."""
        return self._details["study"]

    @property
    def name(self) -> str:
        """The study's name."""
        return self.study["name"]

    @property
    def state(self) -> str:
        """COMPLETE, STOPPED or FAILED."""
        return _rows.plain_state(self.study["state"])

    @property
    def trials(self) -> list[dict]:
        """All trials, ordered by number."""
        return self._details["trials"]

    @property
    def best_trial(self) -> dict | None:
        """The best trial; None if no trial has a value, or all that have one break a constraint."""
        return next((trial for trial in self.trials if trial["number"] == self.study["best_trial"]), None)

    @property
    def best_value(self) -> float | None:
        """The best trial's value of the metric; None if no trial has one."""
        return self.study["best_value"]

    @property
    def front(self) -> list[dict]:
        """Of a study of several metrics, which has no best trial: the complete trials that keep to its constraints and that no
        other one is at least as good as in all metrics and better in one (the Pareto front), by number."""
        return _display.front(self._details)

    @property
    def best_parameters(self) -> dict | None:
        """The best trial's parameters by name; None if no trial has a value."""
        best = self.best_trial
        return None if best is None else best["parameters"]

    def rows(self, steps: bool = False) -> list[dict]:
        """One dict per trial or, with `steps`, per trial and reported step, with the columns of `tuner export`."""
        return _rows.step_rows(self._details) if steps else _rows.trial_rows(self._details)

    def dataframe(self, steps: bool = False) -> "pandas.DataFrame":
        """The same as a pandas DataFrame."""
        return _rows.dataframe(self.rows(steps))

    def log_files(self, number: int) -> list[pathlib.Path]:
        """The files with what the trial's replicas have printed, the oldest replica first."""
        if self.directory is None:
            return []
        return _rows.log_files(self.directory, self.name, number)

    def output(self, number: int) -> str:
        """What the trial's replicas have printed."""
        if not any(trial["number"] == number for trial in self.trials):
            raise NotFoundError(f'study "{self.name}" has no trial {number}', "NOT_FOUND")
        if self.directory is None:
            raise UsageError(f"a service ran the study: espalier.Client(...).logs({self.name!r}, {number}) has the "
                             "output of its trials")
        return _rows.output(self.directory, self.name, number)

    def __repr__(self):
        return f"<espalier.Result {_display.headline(self._details)}>"

    def _repr_html_(self):
        return _display.as_html(self._details)
