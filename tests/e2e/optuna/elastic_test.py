"""Objectives of Optuna's that train on the pool, with elastic trials in Python: a script's and a function's."""
import environment

environment.run_inside(__file__)

import sys
import threading
import unittest

sys.path.insert(0, str(environment.ROOT / "adapters" / "optuna" / "python"))
sys.path.insert(0, str(environment.ROOT / "python"))
sys.path.insert(0, str(environment.ROOT / "tests" / "python"))

import espalier.optuna
import held_objective
import optuna

from harness import BIN, ROOT, TunerTest, wait_for

optuna.logging.set_verbosity(optuna.logging.ERROR)
PYTHON = ROOT / ".deps/venv/bin/python3"
EXAMPLE = ROOT / "examples/python_fashion_mnist/fashion_mnist.py"
VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1",
             "ESPALIER_TORCH_LIBRARY": str(BIN.parent / "lib/libespalier_torch.so")}


class ElasticTrain(TunerTest):
    def setUp(self):
        super().setUp()
        if not PYTHON.exists():
            self.skipTest(f"there is no {PYTHON}; see scripts/setup.sh")
        # A busy machine may keep an agent or a replica from its word.
        self.serve(self.dir / "train.db", options=["--lease", 60])
        self.agent(2, options=["--replica-lease", 0])

    def grow_each(self, study, trials, seen=None):
        """Has the pool's trials, which come one after the other, train on one slot and then on two. Those of held_objective
        begin when they are pinned to one."""
        where = ("--service", self.grpc)
        def listed():
            words = self.run_tuner("ls", *where).stdout.split()
            return next((word for word in words if word.startswith(f"optuna-{study}-")), None)
        name = wait_for(listed, "the pool's study")
        for number in range(trials):
            wait_for(lambda: len(self.export(*where, study=name)["trials"]) > number, "the trial")
            self.run_tuner("pin", name, number, "--slots", 1, *where)
            (self.dir / str(number)).touch()
            self.grow_to_two(*where, study=name, number=number)
        if seen is not None:
            seen.touch()

    def test_a_trial_grows_while_optuna_waits(self):
        seen = self.slow_losses()
        variables = dict(VARIABLES, PYTHONPATH=f"{self.dir}:{VARIABLES['PYTHONPATH']}")
        study = optuna.create_study(study_name="elastic", storage=espalier.optuna.storage(self.grpc), direction="maximize")

        def objective(trial):
            trial.suggest_float("lr", 0.01, 0.03, log=True)
            trial.suggest_categorical("batch_size", [128])
            return espalier.optuna.train(trial, [str(PYTHON), str(EXAMPLE), "--epochs", "25", "--samples", "4000"],
                                         slots=(1, 8), env=variables)

        growing = threading.Thread(target=self.grow_each, args=("elastic", 1, seen))
        growing.start()
        study.optimize(objective, n_trials=1)
        growing.join()
        (ours,) = study.trials
        (theirs,) = self.export("--service", self.grpc, study=ours.user_attrs["espalier"].split("/")[0])["trials"]
        self.assertEqual([(r["from_replicas"], r["to_replicas"]) for r in theirs["resizes"]][:1], [(1, 2)])
        self.assertEqual(list(ours.intermediate_values), list(range(1, 26)))
        self.assertEqual(ours.value, ours.intermediate_values[25])
        self.assertEqual({p["name"] for p in theirs["parameters"]}, {"lr", "batch_size"})

    def test_a_function_trains_with_what_is_suggested(self):
        variables = {k: v for k, v in VARIABLES.items() if k != "PYTHONPATH"} | {"GATES": str(self.dir)}
        study = optuna.create_study(study_name="function", storage=espalier.optuna.storage(self.grpc))

        def objective(trial):
            trial.suggest_float("lr", 0.01, 0.1, log=True)
            trial.suggest_categorical("batch_size", [16, 32])
            return espalier.optuna.train(trial, held_objective.until_two_replicas, slots=(1, 2), python=str(PYTHON),
                                         env=variables)

        for batch_size in (16, 32):
            study.enqueue_trial({"batch_size": batch_size})
        growing = threading.Thread(target=self.grow_each, args=("function", 2))
        growing.start()
        study.optimize(objective, n_trials=2)
        growing.join()
        self.assertEqual([t.params["batch_size"] for t in study.trials], [16, 32])
        (name,) = {t.user_attrs["espalier"].split("/")[0] for t in study.trials}
        pools = self.export("--service", self.grpc, study=name)["trials"]
        self.assertEqual(len(pools), 2)
        for ours, theirs in zip(study.trials, pools):
            self.assertEqual([(r["from_replicas"], r["to_replicas"]) for r in theirs["resizes"]][:1], [(1, 2)])
            steps = list(range(1, len(theirs["values"]) + 1))
            self.assertEqual(list(ours.intermediate_values), steps)
            self.assertEqual(ours.value, ours.intermediate_values[steps[-1]])
            self.assertEqual([v["extra"]["replicas"] for v in theirs["values"]], [1] * (len(steps) - 1) + [2])
            for value in theirs["values"]:
                self.assertEqual((value["extra"]["lr"], value["extra"]["batch_size"]),
                                 (ours.params["lr"], ours.params["batch_size"]))


if __name__ == "__main__":
    unittest.main()
