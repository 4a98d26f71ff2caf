"""Steps of fewer samples than replicas: those that have none come to what the others and a plain loop come to."""
import json
import os
import pathlib
import sys
import unittest

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import short_steps  # noqa: E402
from harness import TunerTest  # noqa: E402

REPLICAS = 3


class ShortSteps(TunerTest):
    def test_each_way_of_taking_steps(self):
        torch.set_num_threads(1)
        study = self.study([sys.executable, str(ROOT / "tests/python/short_steps.py"), str(self.dir)],
                           trials=len(short_steps.WAYS), max_restarts=0, sampler="grid",
                           metric={"name": "samples", "direction": "maximize"},
                           search_space={"way": {"_type": "choice", "_value": list(short_steps.WAYS)}},
                           slots={"min": REPLICAS, "max": REPLICAS})
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", REPLICAS, timeout=500)
        trials = self.export("--db", self.dir / "run/espalier.db")["trials"]
        by_way = {json.loads(trial["parameters"][0]["json"]): trial for trial in trials}
        self.assertEqual(sorted(by_way), sorted(short_steps.WAYS))
        for way, trial in by_way.items():
            with self.subTest(way):
                self.assertEqual(trial["state"], "TRIAL_COMPLETE", self.logs(trial))
                self.check(way, trial)

    def check(self, way, trial):
        samples = short_steps.samples_of(way)
        if way.startswith("stop"):
            samples = short_steps.STOP_AFTER * short_steps.batch_of(way)
        for value in trial["values"]:
            self.assertEqual((float(value["value"]), value["extra"]["replicas"]), (samples, REPLICAS))
        expected = short_steps.plain(way)
        for rank in range(REPLICAS):
            got = torch.load(self.dir / f"{way}-{rank}")
            torch.testing.assert_close(got["parameters"], expected["parameters"], rtol=0, atol=1e-5)
            self.assertAlmostEqual(got["rate"], expected["rate"], places=12)
            self.assertEqual(got["scale"], expected["scale"])

    def logs(self, trial):
        return "\n".join(p.read_text() for p in self.dir.rglob("replica-*.log")) or str(trial)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
