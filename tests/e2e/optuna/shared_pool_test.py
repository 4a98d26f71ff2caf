"""The example of one pool for Optuna's trials and ours, and the Python package with the oldest Optuna that it is made for."""
import environment

environment.run_inside(__file__)

import os
import re
import subprocess
import unittest

from harness import BIN, ROOT, TunerTest

PACKAGE = ROOT / "adapters" / "optuna" / "python"
HOLDS_ONE = """
import pickle, sys
import espalier_optuna, optuna
storage = pickle.loads(pickle.dumps(espalier_optuna.storage(sys.argv[1])))
storage.wait_server_ready(timeout=60)
study = optuna.create_study(study_name="old", storage=storage)

def objective(trial):
    with espalier_optuna.slots(trial, 1, timeout=60) as held:
        return trial.suggest_float("x", held.slots[0].index, 1)

study.optimize(objective, n_trials=3)
print(optuna.__version__, len(study.trials))
"""


class SharedPool(TunerTest):
    def test_the_example_runs(self):
        # Epochs so long that the workers, however long they take to start, find our study there.
        env = dict(os.environ, ESPALIER_BIN=str(BIN), PYTHON=environment.python(), EPOCH_TIME_S="0.5")
        done = subprocess.run([ROOT / "examples" / "optuna_shared_pool" / "run.sh"], env=env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("no slot was held twice", done.stdout)
        figures = re.search(r"up to (\d) slots while Optuna's held some, up to (\d) otherwise; Optuna's up to (\d)", done.stdout)
        beside, alone, theirs = map(int, figures.groups())
        self.assertEqual(alone, 4, "the whole pool is ours while nobody else asks")
        self.assertGreater(beside, 0, "nobody starves")
        self.assertGreater(theirs, 0)
        self.assertEqual(len(re.findall(r"trial \d+ \(width \d+\) trains on pool", done.stdout)), 8)

    def test_the_example_says_what_it_misses(self):
        example = ROOT / "examples" / "optuna_shared_pool" / "run.sh"
        done = subprocess.run([example], env={"PATH": "/usr/bin:/bin", "ESPALIER_BIN": str(BIN), "PYTHON": "/bin/false"},
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("pip install optuna", done.stderr)

    def test_an_older_optuna(self):
        python = environment.python("4.5.0")
        self.serve(self.dir / "old.db")
        self.agent(1)
        done = subprocess.run([python, "-c", HOLDS_ONE, self.grpc], env=dict(os.environ, PYTHONPATH=str(PACKAGE)),
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split(), ["4.5.0", "3"])


if __name__ == "__main__":
    unittest.main()
