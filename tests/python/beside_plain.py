"""Programs in several ways, each a trial of a shared pool, beside the same as plain loops."""
import json
import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import LONG_S, SharedPoolTest  # noqa: E402


class BesidePlainLoops(SharedPoolTest):
    """Of a program whose parameters are its "way" and "most", the samples of one forward pass. Each replica saves what it comes
    to as WAY-MOST-RANK in the folder that it is given."""

    def train(self, program, replicas, most, ways, check):
        """Trains in each of these ways on so many replicas, and calls `check` with the way and what each replica comes to."""
        torch.set_num_threads(1)
        space = {"way": {"_type": "choice", "_value": list(ways)}, "most": {"_type": "choice", "_value": [most]}}
        study = self.study([sys.executable, str(ROOT / "tests/python" / program), str(self.dir)], trials=len(ways),
                           max_restarts=0, sampler="grid", search_space=space, slots={"min": replicas, "max": replicas})
        self.run_tuner("submit", study, "--service", self.grpc, "--wait", timeout=LONG_S)
        trials = self.export()["trials"]
        self.assertEqual(len(trials), len(ways))
        for trial in trials:
            way = next(v for p in trial["parameters"] if (v := json.loads(p["json"])) in ways)
            with self.subTest(way):
                self.assertEqual(trial["state"], "TRIAL_COMPLETE", self.logs())
                self.assertEqual({v["extra"]["replicas"] for v in trial["values"]}, {replicas})
                check(way, [torch.load(self.dir / f"{way}-{most}-{rank}") for rank in range(replicas)])
