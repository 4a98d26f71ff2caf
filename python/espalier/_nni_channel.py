"""The channel through which NNI 3.0 speaks, in an elastic trial."""
import json
import numbers
import os

import nni.trial
from nni.runtime.trial_command_channel import TrialCommandChannel

from espalier import _trial
from espalier._runtime import runtime
from espalier.errors import UsageError


class Channel(TrialCommandChannel):
    def receive_parameter(self):
        """The trial's parameters, nested as NNI's tuner made them."""
        dict(_trial.of_process().parameters)  # the program has asked for all of them
        with open(os.environ["ESPALIER_PARAMETERS"], encoding="utf-8") as file:
            parameters = json.load(file)
        return {"parameter_id": None, "parameter_source": "algorithm", "parameters": parameters}

    def send_metric(self, type, parameter_id, trial_job_id, sequence, value):  # pylint: disable=redefined-builtin
        trial = _trial.of_process()
        number, extra = _figures(value)
        if type == "FINAL":
            # Said when the script has come to its end: what it still does then is done on all replicas.
            trial.result = number
        elif runtime().step_was_dropped():
            nni.trial.overwrite_intermediate_seq(sequence - 1)  # NNI adds 1; it is reported again with its step
        else:
            trial.report_beside(sequence + 1, number, extra)


def _figures(value):
    """NNI's value is a number, or a dict with the number "default"; of the dict's other entries the numbers go along."""
    rest = dict(value) if isinstance(value, dict) else {"default": value}
    number = rest.pop("default", None)
    if not _is_number(number):
        raise UsageError(f"nni reports {value!r}: want a number, or a dict whose \"default\" is one")
    return float(number), {str(name): float(of) for name, of in rest.items() if _is_number(of)}


def _is_number(value):
    # Tensors and numpy's arrays of one element count as well.
    return isinstance(value, numbers.Real) or getattr(value, "ndim", None) == 0
