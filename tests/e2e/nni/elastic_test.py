#!/usr/bin/env python3
"""A program of our trial runner beside a script, in one experiment: it is resized, and NNI sees one trial that runs."""
import environment

environment.run_inside(__file__)

import unittest

from harness import BIN, wait_for
from nni_harness import LIVE, TRIAL, NniTest

EPOCHS = 8


class ElasticTest(NniTest):
    def test_a_trial_is_resized_while_nni_sees_it_run(self):
        self.pool(2)
        gate = self.dir / "gate"
        program = f"{BIN / 'fashion_mnist'} --epochs {EPOCHS}"
        experiment = self.experiment(
            trial_command=f'if [ "$NNI_TRIAL_SEQ_ID" = 0 ]; then exec {program}; else exec {TRIAL}; fi',
            variables={"GATE": gate, "OMP_NUM_THREADS": 1}, maximize=True,
            space={"x": {"_type": "uniform", "_value": [0, 1]}, "lr": {"_type": "uniform", "_value": [0.01, 0.05]},
                   "batch_size": {"_type": "choice", "_value": [256]}, "width": {"_type": "choice", "_value": [2]}})
        self.start_experiment(experiment)
        wait_for(lambda: len(self.trials(experiment)) == 2, "both trials")
        elastic, script = sorted(self.trials(experiment), key=lambda id: self.trials(experiment)[id]["sequenceId"])
        wait_for(lambda: self.metrics(experiment, elastic), "its first epoch, on one slot")
        seen = []

        def state():
            status = self.trials(experiment)[elastic]["status"]
            if not seen or seen[-1] != status:
                seen.append(status)
            return status

        # The script's end leaves its slot to the other.
        gate.touch()
        wait_for(lambda: state() not in LIVE, "the trial's end")
        self.wait_done(experiment)
        self.assertEqual(self.states(experiment), ["SUCCEEDED", "SUCCEEDED"])
        self.assertEqual(seen, ["RUNNING", "SUCCEEDED"])
        values = self.metrics(experiment, elastic)
        self.assertEqual([sequence for sequence, _ in values], list(range(EPOCHS)))
        self.assertEqual([value for _, value in self.metrics(experiment, elastic, "FINAL")], [values[-1][1]])
        self.assertEqual(len(self.metrics(experiment, script, "FINAL")), 1)

        trial = next(trial for trial in self.export("--service", self.grpc, study=f"nni-{experiment.id}")["trials"]
                     if trial["number"] in (0, "0"))
        self.assertIn((1, 2), [(resize["from_replicas"], resize["to_replicas"]) for resize in trial["resizes"]])
        self.assertEqual(trial["restarts"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
