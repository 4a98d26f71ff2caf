"""What a replica that joins a trial finds: the model as it is at that moment, and an epoch with batches for it."""
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import BIN  # noqa: E402

from espalier import testing  # noqa: E402


class Joined(unittest.TestCase):
    def test_it_goes_on_where_the_others_are(self):
        before = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", before)
        os.environ["PATH"] = f"{BIN}{os.pathsep}{before}"
        with testing.start([sys.executable, ROOT / "tests/python/joined.py"], slots=(1, 2), max_restarts=0) as trial:
            record = trial.wait_for_step(1)
            self.assertEqual(record["values"][0]["extra"]["rehearsed"], 0)
            for _ in range(3):
                trial.resize(2)
                # Rank 0 is lost: what it had handed over is all that there is.
                step = trial.kill()["step"]
                record = trial.wait_for_step(step + 2)
                self.assertEqual(record["restarts"], 0)
                self.assertEqual(record["values"][-1]["extra"]["rehearsed"], 1, "by that which had joined, once")
                self.assertEqual(record["not_rehearsed"], "")
            for _ in range(4):
                trial.resize(2)
                trial.resize(1)
            record = trial.wait_for_step(record["step"] + 3)
            self.assertLessEqual({value["value"] for value in record["values"]}, {0, 1, 2, 3}, "all steps, and three dropped ones")
            self.assertIn(2, {value["extra"]["replicas"] for value in record["values"]})


if __name__ == "__main__":
    unittest.main()
