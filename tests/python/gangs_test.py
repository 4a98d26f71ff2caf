"""Scripts of Accelerate, DeepSpeed and Lightning as they are: their ranks train one model, and one that dies is the reason."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import LONG_S, TunerTest, processes, wait_for  # noqa: E402


class Gangs(TunerTest):
    def check(self, launch, script, **variables):
        command = [sys.executable, str(ROOT / "tests/e2e/gang" / script), "--lr", "{lr}", "--notes", "{trial_dir}",
                   "--fault", "{fault}"]
        study = self.study(command, launch=launch, env=variables, slots=2, trials=None, sampler="grid", stop_grace_s=1,
                           search_space={"lr": {"_type": "choice", "_value": [0.05]},
                                         "fault": {"_type": "choice", "_value": ["none", "signal:1"]}},
                           metric={"name": "loss", "from_output": "step=(?P<step>[0-9]+) loss=(.*)"}, max_restarts=0)
        # DeepSpeed compiles when it first runs.
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 2, timeout=LONG_S)
        trained, failed = self.export("--db", self.dir / "run/espalier.db")["trials"]
        self.assertEqual(trained["state"], "TRIAL_COMPLETE", trained)
        self.assertEqual([int(value["step"]) for value in trained["values"]], [1, 2, 3])
        folder, = (self.dir / "run").rglob("trial-0")
        models = [(folder / f"model-{rank}").read_text() for rank in range(2)]
        self.assertTrue(models[0].startswith("0.05 "), models)
        self.assertEqual(models[0], models[1], "they have averaged their gradients")
        self.assertEqual(failed["state"], "TRIAL_FAIL", failed)
        self.assertRegex(failed["reason"], r"^rank 1 of 2 on \S+ was killed by signal 11")
        self.assertIn("rank 1 of 2: step=2", failed["last_output"])
        wait_for(lambda: not any(str(self.dir) in word for _, _, words in processes() for word in words), "all to be gone")

    def test_accelerate(self):
        self.check("accelerate", "accelerate_ddp.py")

    def test_deepspeed(self):
        self.check("deepspeed", "deepspeed_zero.py", DS_ACCELERATOR="cpu")

    def test_lightning(self):
        self.check("ranks", "lightning_ddp.py")


if __name__ == "__main__":
    unittest.main()
