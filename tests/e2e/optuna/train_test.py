"""Objectives of Optuna's that train on the pool."""
import environment

environment.run_inside(__file__)

import concurrent.futures
import json
import os
import signal
import sys
import threading
import unittest

sys.path.insert(0, str(environment.ROOT / "adapters" / "optuna" / "python"))
sys.path.insert(0, str(environment.ROOT / "python"))

import espalier.optuna
import optuna
from optuna.trial import TrialState

from harness import PATIENCE_S, TunerTest, wait_for

optuna.logging.set_verbosity(optuna.logging.ERROR)

LEASE_S = 25  # longer than a busy machine keeps a program that waits from its word, which it gives every ten seconds

# Reports its parameter at each of 20 steps; waits for the file go after the second; fails where x is above 1.
SCRIPT = """#!/bin/bash
echo "x is $ESPALIER_PARAM_X"
if [ "${ESPALIER_PARAM_X%%.*}" -ge 1 ]; then exit 3; fi
for step in $(seq 20); do
  tuner tell --step $step --value $ESPALIER_PARAM_X || exit 1
  while [ $step = 2 ] && [ ! -e go ]; do sleep 0.02; done
done
"""


class PruneFromStep(optuna.pruners.BasePruner):
    """Where x is above a half."""

    def prune(self, study, trial):
        return trial.last_step >= 2 and trial.params["x"] > 0.5


class Train(TunerTest):
    def optuna_study(self, options=(), **keys):
        self.serve(self.dir / "train.db", options=options)
        return optuna.create_study(study_name="our study", storage=espalier.optuna.storage(self.grpc), **keys)

    def train_beside(self, trial):
        """Trains a trial with SCRIPT while the test goes on; a future of its value."""
        script = self.write("trial.sh", SCRIPT, 0o755)
        beside = concurrent.futures.ThreadPoolExecutor(1)
        self.addCleanup(beside.shutdown)  # when the service is gone, and with it what train waits for
        return beside.submit(espalier.optuna.train, trial, [script], 1, directory=self.dir)

    def pool_trials(self):
        name = self.run_tuner("ls", "--service", self.grpc).stdout
        (name,) = {word for word in name.split() if word.startswith("optuna-our_study-")}
        return self.export("--service", self.grpc, study=name)["trials"]

    def test_a_command_is_reported_pruned_and_failed(self):
        study = self.optuna_study(pruner=PruneFromStep())
        self.agent(1)
        script = self.write("trial.sh", SCRIPT, 0o755)

        def objective(trial):
            trial.suggest_float("x", 0, 2)
            return espalier.optuna.train(trial, [script], 1, directory=self.dir)

        for x in (0.75, 1.5, 0.25):
            study.enqueue_trial({"x": x})
        study.optimize(objective, n_trials=1)  # is pruned where it waits
        (self.dir / "go").touch()
        study.optimize(objective, n_trials=2, catch=[espalier.optuna.TrainError])
        pruned, failed, complete = study.trials
        self.assertEqual([t.state for t in study.trials], [TrialState.PRUNED, TrialState.FAIL, TrialState.COMPLETE])
        self.assertEqual(complete.value, 0.25)
        self.assertEqual(complete.intermediate_values, {step: 0.25 for step in range(1, 21)})
        self.assertEqual(pruned.intermediate_values, {1: 0.75, 2: 0.75})
        theirs = self.pool_trials()
        self.assertEqual([t["state"] for t in theirs], ["TRIAL_PRUNED", "TRIAL_FAIL", "TRIAL_COMPLETE"])
        self.assertIn("Optuna's pruner ended trial 0", theirs[0]["reason"])
        self.assertEqual([json.loads(t["user_attributes"]["optuna_trial"]) for t in theirs], [0, 1, 2])
        with self.assertRaisesRegex(espalier.optuna.TrainError, "(?s)/3 has failed: .*3.*x is 1.5\n"
                                    r"all of its output: tuner logs optuna-our_study-\w+ 3$"):
            study.enqueue_trial({"x": 1.5})
            study.optimize(objective, n_trials=1)

    def test_choices_may_be_of_any_json(self):
        study = self.optuna_study()
        self.agent(1)
        script = self.write("trial.sh", "#!/bin/bash\n"
                            'cp "$ESPALIER_PARAMETERS" seen.json\n'
                            '[ "$ESPALIER_PARAM_DEPTH" = null ] && tuner tell --value 0.5 --final\n', 0o755)

        def objective(trial):
            trial.suggest_categorical("depth", [None])
            trial.suggest_categorical("shape", [(1, 2)])
            trial.suggest_categorical("rule", ["null"])
            return espalier.optuna.train(trial, [script], 1, directory=self.dir)

        study.optimize(objective, n_trials=1)
        self.assertEqual(study.trials[0].value, 0.5)
        self.assertEqual(json.loads((self.dir / "seen.json").read_text()), {"depth": None, "shape": [1, 2], "rule": "null"})
        (theirs,) = self.pool_trials()
        self.assertEqual({p["name"]: json.loads(p["json"]) for p in theirs["parameters"]},
                         {"depth": "null", "shape": "[1,2]", "rule": "null"})

    def test_ctrl_c_stops_the_pools_trial_too(self):
        study = self.optuna_study()
        self.agent(1)
        script = self.write("trial.sh", SCRIPT, 0o755)

        def interrupt():
            wait_for(lambda: any(t.intermediate_values for t in study.trials), "the first report")
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        with self.assertRaises(KeyboardInterrupt):
            espalier.optuna.train(study.ask({"x": optuna.distributions.FloatDistribution(0, 0.9)}), [script], 1,
                                  directory=self.dir)
        (trial,) = self.pool_trials()
        self.assertEqual(trial["state"], "TRIAL_FAIL")
        self.assertIn("Optuna's trial 0 has ended (KeyboardInterrupt)", trial["reason"])

    def test_a_trial_whose_program_waits_is_not_silent(self):
        study = self.optuna_study(options=["--client-lease", LEASE_S])
        waits = study.ask({"x": optuna.distributions.FloatDistribution(0, 0.9)})
        value = self.train_beside(waits)  # of a pool without slots
        wait_for(lambda: "espalier" in study.trials[0].user_attrs, "the pool's trial")
        study.ask()  # is left alone, and heard of later than the other was at its beginning
        wait_for(lambda: study.trials[1].state == TrialState.FAIL, "the silent trial to fail")
        self.assertEqual(study.trials[0].state, TrialState.RUNNING)
        (self.dir / "go").touch()
        self.agent(1)
        study.tell(waits, value.result(PATIENCE_S))
        self.assertEqual(study.trials[0].value, waits.params["x"])

    def test_a_stopped_study_is_told_to_those_who_wait(self):
        study = self.optuna_study()
        study.enqueue_trial({"x": 0.25})
        with self.assertLogs("espalier_optuna", "WARNING") as logs:
            value = self.train_beside(study.ask({"x": optuna.distributions.FloatDistribution(0, 1)}))
            wait_for(lambda: "espalier" in study.trials[0].user_attrs, "the pool's trial")
            name = study.trials[0].user_attrs["espalier"].split("/")[0]
            self.run_tuner("stop", name, "--service", self.grpc)
            wait_for(lambda: logs.output, "the warning")
        self.assertIn(f"{name}/0 waits: study {name} is stopped, and `tuner resume {name}` lets it go on", logs.output[0])
        self.run_tuner("resume", name, "--service", self.grpc)
        (self.dir / "go").touch()
        self.agent(1)
        self.assertEqual(value.result(PATIENCE_S), 0.25)

    def test_what_cannot_be_is_said(self):
        study = self.optuna_study()
        trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
        for slots in (0, (2, 1), (0, None)):
            with self.assertRaisesRegex(ValueError, "least"):
                espalier.optuna.train(trial, "true", slots)
        with self.assertRaisesRegex(espalier.optuna.TrainError, "no_such_key"):
            espalier.optuna.train(trial, "true", no_such_key=1)
        with self.assertRaisesRegex(TypeError, "InMemoryStorage"):
            espalier.optuna.train(optuna.create_study().ask(), "true")
        several = optuna.create_study(study_name="two", storage=study._storage, directions=["minimize", "maximize"])
        with self.assertRaisesRegex(ValueError, "several objectives"):
            espalier.optuna.train(several.ask(), "true")


if __name__ == "__main__":
    unittest.main()
