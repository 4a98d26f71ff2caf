"""What a trainer has measured, as a trial hears it."""
import sys
from numbers import Real

import espalier.torch as adl
from espalier._the_trial import the_trial
from espalier.errors import UsageError


class Reports:
    """Sends them. What is not reported, or something else in its place, is said once, by rank 0, on stderr."""

    def __init__(self, wanted):
        """wanted: the metric that the program names for the trial; None: it names none."""
        self.wanted = wanted
        self._said = set()

    def say(self, message):
        if message not in self._said and adl.rank() == 0:
            print(f"espalier: ElasticTrainer: {message}", file=sys.stderr, flush=True)
        self._said.add(message)

    def figures(self, metrics):
        """Those that are single real numbers."""
        found = {name: number for name, value in metrics.items() if (number := _single(value)) is not None}
        for name in metrics.keys() - found.keys():
            what = _described(metrics[name])
            if name == self.wanted:
                raise UsageError(f'ElasticTrainer: trial_metric is "{name}", and that is {what}: want a single real number')
            self.say(f'"{name}" is {what}, and is not reported to the trial: want a single real number')
        return found

    def send(self, step, value, others):
        the_trial().report_beside(step, value, others)


def _single(value):
    """None where it is no number, or several."""
    if isinstance(value, Real):
        return value
    shape = getattr(value, "shape", None)  # of a tensor or an array
    if shape is None or any(size != 1 for size in shape):
        return None
    number = value.item()
    return number if isinstance(number, Real) else None


def _described(value):
    shape = getattr(value, "shape", None)
    kind = type(value).__name__
    if shape is None:
        return f"of type {kind}"
    return f"a {kind} of shape {tuple(shape)} of {value.dtype}"
