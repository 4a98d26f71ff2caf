"""Programs that ask for the trial where there is no torch: parameters in, reports out, on one slot."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import PATIENCE_S, TunerTest  # noqa: E402

WITHOUT_TORCH = """import sys
sys.modules["torch"] = None  # as where it is not installed
import espalier
"""
PROGRAM = WITHOUT_TORCH + """import argparse
trial = espalier.trial()
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.25)
arguments = parser.parse_args()
lr, kind = trial.get("lr", arguments.lr), trial.get("kind", "plain")
if kind == "fails":
    trial.fail("the data are not there")
if kind == "beside":
    trial.report(1, lr, accuracy=1.0)
for step in (1, 2):
    trial.report(step, lr * step)
print("study", trial.study, "number", trial.number, "in", trial.directory.name, "elastic", trial.elastic)
if kind == "result":
    trial.finish(7)
"""


class Plain(TunerTest):
    def setUp(self):
        super().setUp()
        self.program = self.write("program.py", PROGRAM)
        self.environment = {"PYTHONPATH": str(ROOT / "python")}

    def alone(self, *arguments):
        return subprocess.run([sys.executable, self.program, *arguments], text=True, capture_output=True, timeout=PATIENCE_S,
                              env={**os.environ, **self.environment})

    def test_alone_it_prints_what_is_reported(self):
        self.assertEqual(self.alone("--lr", "0.5").stdout.splitlines()[:2],
                         ["report step=1 value=0.5", "report step=2 value=1"])
        given = self.alone("--set", "lr=2", "--set", 'kind={"_name": "result", "depth": 3}', "--lr", "0.5")
        self.assertEqual(given.stdout.splitlines()[-1], "finished value=7", given.stderr)
        self.assertIn("report step=2 value=4\n", given.stdout)
        wrong = self.alone("--set", "lr")
        self.assertEqual((wrong.returncode, "want name=value" in wrong.stderr), (2, True))
        self.assertEqual(self.alone("--set", "kind=fails").returncode, 1)

    def test_in_a_study_its_reports_are_the_trials(self):
        kinds = ["plain", "result", "fails", "beside"]
        study = self.study([sys.executable, self.program], trials=4, env=self.environment, sampler="grid",
                           search_space={"lr": {"_type": "choice", "_value": [0.5]},
                                         "kind": {"_type": "choice", "_value": kinds}})
        run = self.dir / "run"
        self.run_tuner("run", study, "--dir", run, "--slots", 2)
        trials = {json.loads(next(p["json"] for p in trial["parameters"] if p["name"] == "kind")): trial
                  for trial in self.export("--db", run / "espalier.db")["trials"]}
        self.assertEqual({kind: trials[kind]["state"] for kind in kinds},
                         {"plain": "TRIAL_COMPLETE", "result": "TRIAL_COMPLETE", "fails": "TRIAL_FAIL", "beside": "TRIAL_COMPLETE"})
        self.assertEqual([(int(v["step"]), v["value"]) for v in trials["plain"]["values"]], [(1, 0.5), (2, 1.0)])
        self.assertEqual([trials[kind]["value"] for kind in ("plain", "result")], [1.0, 7.0])
        logs = {kind: self.run_tuner("logs", "e2e", trial["number"], "--dir", run).stdout for kind, trial in trials.items()}
        self.assertIn("the trial has failed: the data are not there\n", logs["fails"])
        self.assertEqual(trials["beside"]["values"][0]["extra"], {"accuracy": 1.0})
        number = trials["plain"]["number"]
        self.assertIn(f"study e2e number {number} in trial-{number} elastic False", logs["plain"])


if __name__ == "__main__":
    unittest.main()
