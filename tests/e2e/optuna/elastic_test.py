"""An objective of Optuna's that trains on the pool, with an elastic trial in Python."""
import environment

environment.run_inside(__file__)

import sys
import unittest

sys.path.insert(0, str(environment.ROOT / "adapters" / "optuna" / "python"))
sys.path.insert(0, str(environment.ROOT / "python"))

import espalier.optuna
import optuna

from harness import BIN, ROOT, TunerTest

optuna.logging.set_verbosity(optuna.logging.ERROR)
PYTHON = ROOT / ".deps/venv/bin/python3"
EXAMPLE = ROOT / "examples/python_fashion_mnist/fashion_mnist.py"
VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1",
             "ESPALIER_TORCH_LIBRARY": str(BIN.parent / "lib/libespalier_torch.so")}


class ElasticTrain(TunerTest):
    def test_a_trial_grows_while_optuna_waits(self):
        if not PYTHON.exists():
            self.skipTest(f"there is no {PYTHON}; see scripts/setup.sh")
        self.serve(self.dir / "train.db")
        self.agent(2)
        study = optuna.create_study(study_name="elastic", storage=espalier.optuna.storage(self.grpc), direction="maximize")

        def objective(trial):
            trial.suggest_float("lr", 0.01, 0.03, log=True)
            trial.suggest_categorical("batch_size", [128])
            return espalier.optuna.train(trial, [str(PYTHON), str(EXAMPLE), "--epochs", "25", "--samples", "4000"],
                                         slots=(1, 8), env=VARIABLES)

        study.optimize(objective, n_trials=1)
        (ours,) = study.trials
        (theirs,) = self.export("--service", self.grpc, study=ours.user_attrs["espalier"].split("/")[0])["trials"]
        self.assertEqual([(r["from_replicas"], r["to_replicas"]) for r in theirs["resizes"]][:1], [(1, 2)])
        self.assertEqual(list(ours.intermediate_values), list(range(1, 26)))
        self.assertEqual(ours.value, ours.intermediate_values[25])
        self.assertEqual({p["name"] for p in theirs["parameters"]}, {"lr", "batch_size"})


if __name__ == "__main__":
    unittest.main()
