#!/usr/bin/env python3
"""NNI's real manager, tuners, assessor and SDK on our pool, from the first trial to DONE."""
import environment

environment.run_inside(__file__)

import json
import os
import pathlib
import re
import unittest

from harness import wait_for
from nni.experiment.config import CustomAlgorithmConfig
from nni_harness import HERE, TRIAL, NniTest, alive

SDK_TRIAL = """
import nni
parameters = nni.get_next_parameter()
if isinstance(parameters, list):
    nni.report_final_result(sum(parameters))
    raise SystemExit
again = nni.get_next_parameter()
assert again == parameters, (parameters, again)
for step in range(3):
    nni.report_intermediate_result(parameters["net"]["width"] * parameters["x"] + step)
nni.report_final_result({"default": parameters["x"], "width": parameters["net"]["width"]})
"""


class ExperimentTest(NniTest):
    def test_tuner_assessor_and_users_kills(self):
        self.pool(2)
        gate = self.dir / "gate"
        experiment = self.experiment(
            tuner="TPE", variables={"STEPS": 20, "GATE": gate},
            space={"x": {"_type": "uniform", "_value": [0.5, 1]}, "bad": {"_type": "choice", "_value": [0, 1]}})
        config = experiment.config
        config.max_trial_number, config.trial_concurrency = 12, 3
        config.tuner.class_args = {"seed": 3, "optimize_mode": "maximize"}
        config.assessor.name, config.assessor.class_args = "Medianstop", {"start_step": 3, "optimize_mode": "maximize"}
        self.pretend_tensorboard()
        self.start_experiment(experiment)

        # Two slots: the third trial waits. Those that run have reported and stand at the gate.
        wait_for(lambda: self.states(experiment) == ["RUNNING", "RUNNING", "WAITING"], "two trials that run and one that waits")
        trials = self.trials(experiment)
        waiting = next(id for id, trial in trials.items() if trial["status"] == "WAITING")
        running = next(id for id, trial in trials.items() if trial["status"] == "RUNNING")
        wait_for(lambda: self.metrics(experiment, running), "a first metric")
        pid = self.starts(running)[0][0]
        for trial in (waiting, running):
            self.rest(experiment, f"trial-jobs/{trial}", "DELETE")
        wait_for(lambda: not alive(pid), "the killed trial's process to end")
        gate.touch()
        self.wait_done(experiment)

        trials = self.trials(experiment)
        self.assertEqual(len(trials), 12)
        self.assertEqual(trials[waiting]["status"], "USER_CANCELED")
        self.assertEqual(trials[running]["status"], "USER_CANCELED")
        self.assertEqual(self.starts(waiting), [], "a trial that was killed while it waited has run")
        self.assertIn("ended already", self.refused(experiment, f"trial-jobs/{running}", "DELETE"))
        stopped = [id for id, trial in trials.items() if trial["status"] == "EARLY_STOPPED"]
        self.assertTrue(stopped, trials)
        for trial in stopped:
            self.assertFalse(any(alive(pid) for pid, _ in self.starts(trial)))
            self.assertEqual(json.loads(trials[trial]["hyperParameters"][0])["parameters"]["bad"], 1)
        self.check_rest(experiment, trials)
        self.check_tensorboard(experiment, next(id for id, trial in trials.items() if trial["status"] == "SUCCEEDED"))
        listed = self.nnictl("trial", "ls", experiment.id)
        self.assertIn("EARLY_STOPPED", listed)
        self.assertIn("USER_CANCELED", listed)

    def check_rest(self, experiment, trials):
        succeeded = [id for id, trial in trials.items() if trial["status"] == "SUCCEEDED"]
        self.assertTrue(succeeded)
        for id in succeeded:
            trial = trials[id]
            self.assertLessEqual(trial["startTime"], trial["endTime"])
            self.assertTrue(trial["logPath"])
            self.assertEqual([sequence for sequence, _ in self.metrics(experiment, id)], list(range(20)))
            self.assertEqual(len(self.metrics(experiment, id, "FINAL")), 1)
            self.assertEqual(json.loads(json.loads(trial["finalMetricData"][0]["data"]))["steps"], 20)
            self.assertIn("step 19", self.rest(experiment, f"trial-file/{id}/stdout"))
        counts = {count["trialJobStatus"]: count["trialJobNumber"] for count in self.rest(experiment, "job-statistics")}
        self.assertEqual(sum(counts.values()), 12)
        self.assertEqual(counts["SUCCEEDED"], len(succeeded))
        self.assertEqual({entry["trialJobId"] for entry in self.rest(experiment, "export-data")}, set(succeeded))
        self.assertTrue(self.rest(experiment, "version").startswith("3.0"))
        self.assertEqual(self.rest(experiment, "experiment")["id"], experiment.id)
        self.assertTrue(self.rest(experiment, f"trial-file/{succeeded[0]}/trial.log"))
        self.assertIn("parameter_id", self.rest(experiment, f"trial-file/{succeeded[0]}/parameter.cfg"))

    @staticmethod
    def pretend_tensorboard():
        """NNI only wants to know that there is one."""
        site = pathlib.Path(os.environ[environment.INSIDE]) / "site"
        (site / "tensorboard.py").write_text('__version__ = "2.0"')
        (site / "bin" / "tensorboard").write_text("#!/bin/sh\nexec sleep 1000")
        (site / "bin" / "tensorboard").chmod(0o755)

    def check_tensorboard(self, experiment, trial):
        """It reads where the trial was told to write."""
        task = self.rest(experiment, "tensorboard", "POST", {"trials": trial})
        written = re.search("tensorboard (.*)", self.rest(experiment, f"trial-file/{trial}/stdout"))[1]
        self.assertEqual(task["trialLogDirectoryList"], [written])

    def test_nnis_own_sdk_nested_spaces_and_the_old_platform(self):
        self.pool(2)
        (self.dir / "code").mkdir()
        (self.dir / "code" / "train.py").write_text(SDK_TRIAL)
        experiment = self.create(
            trialCommand="python3 train.py", trialCodeDirectory="code", trialConcurrency=2, maxTrialNumber=2,
            searchSpace={"x": {"_type": "uniform", "_value": [0, 1]},
                         "net": {"_type": "choice",
                                 "_value": [{"_name": "small", "width": {"_type": "randint", "_value": [1, 9]}}]}},
            tuner={"name": "Random"}, trainingService={"platform": "adl", "serviceAddress": f"http://{self.http}"})
        self.wait_done(experiment)
        for id, trial in self.trials(experiment).items():
            self.assertEqual(trial["status"], "SUCCEEDED", self.rest(experiment, f"trial-file/{id}/stdout"))
            drawn = json.loads(trial["hyperParameters"][0])["parameters"]
            self.assertEqual(self.metrics(experiment, id, "FINAL")[0][1], {"default": drawn["x"], "width": drawn["net"]["width"]})
            self.assertEqual([sequence for sequence, _ in self.metrics(experiment, id)], [0, 1, 2])
        # A user may add a trial whose parameters are any JSON.
        before = set(self.trials(experiment))
        self.rest(experiment, "experiment?update_type=MAX_TRIAL_NUM", "PUT", {"params": {"maxTrialNumber": 3}})
        self.rest(experiment, "trial-jobs", "POST", [1, 2])
        wait_for(lambda: len(self.trials(experiment)) == 3, "a third trial")
        self.wait_done(experiment)
        [added] = set(self.trials(experiment)) - before
        self.assertEqual(self.trials(experiment)[added]["status"], "SUCCEEDED")
        self.assertEqual(self.metrics(experiment, added, "FINAL")[0][1], 3)

    def test_failures_time_limits_and_trials_of_the_users_own(self):
        self.pool(2)
        experiment = self.experiment(trial_command='if [ "$NNI_TRIAL_SEQ_ID" = 0 ]; then echo lost; exit 7; fi; sleep 1000')
        # The first fails long before, also where its processes, the agent or the service stand still for a while.
        experiment.config.max_trial_duration = "25s"
        self.start_experiment(experiment)
        self.wait_done(experiment)
        self.assertEqual(self.states(experiment), ["EARLY_STOPPED", "FAILED"])
        failed = next(trial for trial in self.trials(experiment).values() if trial["status"] == "FAILED")
        self.assertIn("7", failed["message"])
        self.assertIn("lost", self.rest(experiment, f"trial-file/{failed['trialJobId']}/stdout"))

        self.rest(experiment, "experiment?update_type=MAX_TRIAL_NUM", "PUT", {"params": {"maxTrialNumber": 3}})
        self.rest(experiment, "trial-jobs", "POST", {"x": 0.25})
        wait_for(lambda: len(self.trials(experiment)) == 3, "a third trial")
        self.wait_done(experiment)
        self.assertEqual(self.states(experiment), ["EARLY_STOPPED", "EARLY_STOPPED", "FAILED"])

    def test_a_slow_tuner_hears_final_values_before_ends(self):
        self.pool(2)
        # The first trial's end makes NNI ask for a third; while the tuner thinks, the second one ends.
        gate = self.dir / "gate"
        experiment = self.with_tuner("SlowTuner", {"gate": str(gate)}, max_trial_number=4, variables={"STEPS": 1, "GATE": gate},
                                     trial_command=f'if [ "$NNI_TRIAL_SEQ_ID" = 0 ]; then unset GATE; fi; {TRIAL}')
        self.wait_done(experiment)
        self.assertEqual(self.states(experiment), ["SUCCEEDED"] * 4)

    def test_a_tuner_that_crashes_is_an_error(self):
        self.pool(2)
        message = self.wait_error(self.with_tuner("CrashingTuner", max_trial_number=6))[0]
        self.assertIn("tuner", message.lower())

    def with_tuner(self, name, arguments=None, **fields):
        experiment = self.experiment(**fields)
        experiment.config.tuner = CustomAlgorithmConfig(
            class_name=f"slow_tuner.{name}", code_directory=str(HERE), class_args=arguments)
        return self.start_experiment(experiment)


if __name__ == "__main__":
    unittest.main(verbosity=2)
