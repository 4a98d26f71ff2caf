"""Scripts of Accelerate, DeepSpeed and Lightning as they are: their ranks train one model, and one that dies is the reason."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from gang_case import GangCase  # noqa: E402
from harness import LONG_S, TunerTest, processes, wait_for  # noqa: E402


class Gangs(GangCase, TunerTest):
    def check(self, launch, script, **variables):
        study = self.gang_study(launch, script, "{trial_dir}", **variables)
        # DeepSpeed compiles when it first runs.
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 2, timeout=LONG_S)
        trained, failed = self.export("--db", self.dir / "run/espalier.db")["trials"]
        folder, = (self.dir / "run").rglob("trial-0")
        self.assert_gang_trained(trained, folder)
        self.assert_rank_is_blamed(failed)
        wait_for(lambda: not any(str(self.dir) in word for _, _, words in processes() for word in words), "all to be gone")

    def test_accelerate(self):
        self.check("accelerate", "accelerate_ddp.py")

    def test_deepspeed(self):
        self.check("deepspeed", "deepspeed_zero.py", DS_ACCELERATOR="cpu")

    def test_lightning(self):
        self.check("ranks", "lightning_ddp.py")


if __name__ == "__main__":
    unittest.main()
