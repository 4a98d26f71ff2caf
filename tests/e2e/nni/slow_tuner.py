"""A tuner that takes its time, and minds in which order it is told of a trial's final value and end; and one that crashes."""
import pathlib
import time

from nni.algorithms.hpo.random_tuner import RandomTuner


class SlowTuner(RandomTuner):
    """Makes the file `gate` when it is asked for parameters after the first final value, and answers long after."""

    def __init__(self, gate):
        super().__init__(seed=3)
        self._gate = pathlib.Path(gate)
        self._has_final = False
        self._ended = set()

    def generate_multiple_parameters(self, *arguments, **keys):
        generated = super().generate_multiple_parameters(*arguments, **keys)
        if self._has_final:
            self._gate.touch()
            time.sleep(1)
        return generated

    def receive_trial_result(self, parameter_id, *arguments, **keys):
        self._has_final = True
        assert parameter_id not in self._ended, "the end came before the final value"

    def trial_end(self, parameter_id, success, **keys):
        self._ended.add(parameter_id)


class CrashingTuner(RandomTuner):
    def receive_trial_result(self, *arguments, **keys):
        raise ValueError("this tuner crashes")
