"""Replicas validate one model: with the running statistics of rank 0, which checkpoints hold."""
import json
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "e2e"))
from harness import LONG_S, TunerTest  # noqa: E402

LINES = {"loop": 6, "evaluate": 6, "lightning": 6, "transformers": 6}


class Statistics(TunerTest):
    def said(self, name):
        """What each replica has written, a line a validation."""
        return [(self.dir / f"{name}-{rank}").read_text().splitlines() for rank in range(2)]

    def test_validations_of_all_replicas_come_to_the_same(self):
        study = self.study([sys.executable, str(HERE / "statistics_probe.py"), str(self.dir)], trials=len(LINES),
                           sampler="grid", search_space={"way": {"_type": "choice", "_value": list(LINES)}},
                           metric={"name": "v", "direction": "minimize"}, max_restarts=0, slots={"min": 2, "max": 2})
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 2, timeout=LONG_S)
        trials = self.export("--db", self.dir / "run/espalier.db")["trials"]
        self.assertEqual({json.loads(t["parameters"][0]["json"]): t["state"] for t in trials},
                         dict.fromkeys(LINES, "TRIAL_COMPLETE"))
        for way, lines in LINES.items():
            with self.subTest(way):
                first, second = self.said(way)
                self.assertEqual(len(first), lines)
                self.assertEqual(first, second)
        first, second = self.said("before")
        self.assertTrue(all(one != other for one, other in zip(first, second)), "of training they differ")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
