"""What a trial hears of a loop that runs under its own launcher, and what the loop hears of it."""
import os
import pathlib

import espalier
from espalier._plain_runtime import tell, to_save
from espalier.errors import UsageError


class Told:
    """One report a step, from every process of the program: they report alike and stop at the same step."""

    def __init__(self, owner, wanted, rank, ranks):
        """owner: the callback's name, for messages; wanted: the metric that is the trial's value."""
        self._owner, self._wanted = owner, wanted
        self._of = ("--rank", str(rank), "--ranks", str(ranks)) if ranks > 1 else ()
        self._rank = rank
        self._last = None
        self._seen = set()
        self._asked_at = None
        self.goes_on_later = False  # what is evaluated from now on is of no whole epoch

    def report(self, step, metrics):
        """Whether the loop is to end after the step."""
        self._seen.update(metrics)
        if self._wanted not in metrics or step == self._last:
            return False
        self._last, value = step, float(metrics[self._wanted])
        if self._of and "ESPALIER_TRIAL_ID" in os.environ:
            # Lightning's first process starts the others and does not know it when its script begins: a Trial would take
            # it for the only one, and limit it to one GPU.
            return tell("--step", str(step), "--value", repr(value), *self._of) == "stop"
        trial = espalier.trial()
        if self._rank == 0:
            trial.report(step, value)
        return trial.should_stop(step)

    def to_save(self, step, told_to_stop=False):
        """Whether the loop is to save after the step, which is its own, and to end, since its trial goes on elsewhere or
        later. It may be asked once more where the loop has been told to stop at the step, as with a study that is stopped."""
        number = 2 * step + told_to_stop
        if number == self._asked_at or self.goes_on_later:
            return False
        self._asked_at = number
        self.goes_on_later = to_save(number, *self._of) if self._of else espalier.trial().should_save(number)
        return self.goes_on_later

    def end(self):
        whole_before = "ESPALIER_LAST_STEP" in os.environ  # nothing may be left to do after a new start
        if self._last is None and not self.goes_on_later and not whole_before:
            given = ", ".join(sorted(self._seen)) or "none"
            raise UsageError(f'{self._owner}: nothing was reported to the trial, as no evaluation has "{self._wanted}": name one '
                             f"of those that there are as trial_metric: {given}")


def is_kept(folder):
    """Whether what is saved in the folder is the trial's own, and goes with it to other machines."""
    kept = os.environ.get("ESPALIER_CHECKPOINT_DIR")
    return kept is not None and pathlib.Path(folder).resolve().is_relative_to(pathlib.Path(kept).resolve())
