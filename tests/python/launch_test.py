"""Trials with a "launch" that train with PyTorch: their ranks train one model, and one that fails is the trial's reason."""
import os
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import TunerTest  # noqa: E402

PROGRAM = str(ROOT / "tests/python/parallel_ranks.py")


class Launch(TunerTest):
    def check(self, launch, imported="False", **keys):
        study = self.study([sys.executable, PROGRAM, "{trial}", "{x}"], launch=launch,
                           search_space={"x": {"_type": "uniform", "_value": [0.01, 0.1]}}, slots=2, trials=2, stop_grace_s=1,
                           metric={"name": "loss", "from_output": "step=(?P<step>[0-9]+) loss=(.*)"}, **keys)
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 4, env=dict(os.environ, MASTER_PORT="1"))
        trained, failed = self.export("--db", self.dir / "run/espalier.db")["trials"]
        self.assertEqual(trained["state"], "TRIAL_COMPLETE", trained)
        self.assertEqual([int(value["step"]) for value in trained["values"]], [1, 2, 3])
        folder, = (self.dir / "run").rglob("trial-0")
        log, = folder.glob("replica-*.rank-1.log")
        self.assertEqual(len(re.findall("^rank 1 of 2, step=", log.read_text(), re.MULTILINE)), 3)
        self.assertIn(f"imported before: {imported}\n", log.read_text())
        self.assertRegex(failed["reason"], r"^rank 1 of 2 on \S+ exited with code 1")
        self.assertIn("ValueError: the last rank has read a bad sample", failed["last_output"])
        self.assertNotIn("onnection", failed["last_output"], "which is rank 0's")

    def test_ranks_of_our_own(self):
        self.check("ranks")

    def test_ranks_that_are_forked(self):
        self.check("ranks", "True", preload=["torch"], env={"PYTHONPATH": str(ROOT / "python")})

    def test_torchrun(self):
        self.check("torchrun")

    def test_torchrun_that_is_forked(self):
        self.check("torchrun", preload=["torch"], env={"PYTHONPATH": str(ROOT / "python")})


if __name__ == "__main__":
    unittest.main()
