"""A tuner that takes its time, and minds in which order it is told of a trial's final value and end; and one that crashes."""
import time

from nni.algorithms.hpo.random_tuner import RandomTuner


class SlowTuner(RandomTuner):
    def __init__(self):
        super().__init__(seed=3)
        self._ended = set()

    def generate_parameters(self, *arguments, **keys):
        time.sleep(0.8)
        return super().generate_parameters(*arguments, **keys)

    def receive_trial_result(self, parameter_id, *arguments, **keys):
        assert parameter_id not in self._ended, "the end came before the final value"

    def trial_end(self, parameter_id, success, **keys):
        self._ended.add(parameter_id)


class CrashingTuner(RandomTuner):
    def receive_trial_result(self, *arguments, **keys):
        raise ValueError("this tuner crashes")
