"""The examples with scikit-learn, XGBoost and JAX, which know nothing of Espalier, tuned by `tuner run`."""
import json
import re
import unittest

from harness import ROOT, TunerTest


class Frameworks(TunerTest):
    def tune(self, name, first_step, steps):
        """Runs the example, and checks that the values of each trial are those that it has printed. The final values."""
        script = (ROOT / f"examples/{name}/train.py").read_text()
        self.assertNotIn("espalier", script.lower())
        study = ROOT / f"examples/{name}/study.json"
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 2)
        record = self.export("--db", self.dir / "run/espalier.db", study=name)
        self.assertEqual(record["study"]["state"], "STUDY_COMPLETE")
        given = json.loads(study.read_text())
        self.assertEqual(len(record["trials"]), given["trials"])
        for trial in record["trials"]:
            self.assertIn(trial["state"], ("TRIAL_COMPLETE", "TRIAL_PRUNED"))
            told = [int(value["step"]) for value in trial["values"]]
            self.assertEqual(told, list(range(first_step, first_step + len(told))))
            log = self.run_tuner("logs", name, trial["number"], "--dir", self.dir / "run").stdout
            printed = [float(found[-1]) for found in re.findall(given["metric"]["from_output"], log, re.MULTILINE)]
            self.assertEqual([value["value"] for value in trial["values"]], printed[:len(told)])
            if trial["state"] == "TRIAL_COMPLETE":
                self.assertEqual(len(told), steps)
                self.assertEqual(trial["value"], trial["values"][-1]["value"])
        return [trial["value"] for trial in record["trials"] if trial["state"] == "TRIAL_COMPLETE"]

    def test_scikit_learn(self):
        losses = self.tune("sklearn", first_step=1, steps=20)
        self.assertLess(min(losses), 0.02)

    def test_xgboost(self):
        losses = self.tune("xgboost", first_step=0, steps=30)
        self.assertLess(min(losses), 0.45)

    def test_jax(self):
        accuracies = self.tune("jax", first_step=1, steps=20)
        self.assertGreater(max(accuracies), 0.9)


if __name__ == "__main__":
    unittest.main()
