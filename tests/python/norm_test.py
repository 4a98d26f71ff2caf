"""SyncBatchNorm over a group whose size changes: what one replica's BatchNorm makes of the whole batch."""
import json
import os
import pathlib
import sys
import unittest

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import espalier  # noqa: E402
import espalier.torch as adl  # noqa: E402
import norm  # noqa: E402
from forked import alone  # noqa: E402
from harness import TunerTest, wait_for  # noqa: E402
from small_program import data  # noqa: E402


class Norm(TunerTest):
    def study_of(self, ways, grow, **keys):
        space = {"way": {"_type": "choice", "_value": list(ways)}, "grow": {"_type": "choice", "_value": [grow]}}
        return self.study([sys.executable, str(ROOT / "tests/python/norm.py"), str(self.dir)], trials=len(ways),
                          max_restarts=0, sampler="grid", search_space=space, **keys)

    def check(self, way, epochs):
        expected = norm.plain(way, epochs)
        for rank in range(2):
            got = torch.load(self.dir / f"{way}-{rank}")
            for kind, values in expected.items():
                torch.testing.assert_close(got[kind], values, rtol=1e-4, atol=1e-5)

    def logs(self, trial):
        return "\n".join(p.read_text() for p in self.dir.rglob("replica-*.log")) or str(trial)

    def test_two_replicas_come_to_what_one_comes_to(self):
        study = self.study_of(norm.WAYS, False, slots={"min": 2, "max": 2})
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 2, timeout=300)
        trials = self.export("--db", self.dir / "run/espalier.db")["trials"]
        self.assertEqual(len(trials), len(norm.WAYS))
        for trial in trials:
            way = next(v for p in trial["parameters"] if (v := json.loads(p["json"])) in norm.WAYS)
            with self.subTest(way):
                self.assertEqual(trial["state"], "TRIAL_COMPLETE", self.logs(trial))
                self.check(way, norm.TRAINED)

    def test_statistics_follow_a_group_that_grows(self):
        self.serve(self.dir / "pool.db")
        where = ("--service", self.grpc)
        self.agent(1, name="first")
        self.run_tuner("submit", self.study_of(["images"], True, slots={"min": 1, "max": 2}), *where)
        trial = lambda: self.export(*where)["trials"][0]  # noqa: E731
        wait_for(lambda: self.export(*where)["trials"] and len(trial()["values"]) == norm.TRAINED, "epochs alone")
        self.agent(1, name="second")
        wait_for(lambda: " of 2 slots" in self.run_tuner("pool", *where).stdout, "the other node")
        self.run_tuner("pin", "e2e", 0, "--slots", 2, *where)
        wait_for(lambda: trial()["state"] in ("TRIAL_COMPLETE", "TRIAL_FAIL"), "the trial's end")
        self.assertEqual(trial()["state"], "TRIAL_COMPLETE", self.logs(trial()))
        self.assertEqual([float(v["value"]) for v in trial()["values"]], [0.0] * norm.TRAINED + [1.0] * norm.TRAINED)
        self.check("images", 2 * norm.TRAINED)


class Alone(unittest.TestCase):
    @alone
    def test_without_a_tuner_and_converted_after_the_wrap(self):
        model = torch.nn.Sequential(norm.make("linear"))
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        parallel = adl.AdaptiveDataParallel(model, optimizer)
        torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
        dataset = torch.utils.data.TensorDataset(*data(norm.samples_of("linear")))
        loader = adl.AdaptiveDataLoader(dataset, batch_size=norm.BATCH)
        for _ in adl.epochs(2):
            norm.restart(model)
            for x, y in loader:
                torch.nn.functional.mse_loss(parallel(x), y).backward()
                optimizer.step()
        expected = norm.plain("linear", 2)["parameters"]
        torch.testing.assert_close(norm.outcome(model)["parameters"], expected, rtol=1e-4, atol=1e-5)
        model.eval()
        self.assertEqual(model(dataset.tensors[0][:1]).shape, (1, 1))

    @alone
    def test_what_cannot_follow_the_group_is_refused(self):
        class Own(torch.nn.SyncBatchNorm):
            pass

        for layer, what in ((torch.nn.SyncBatchNorm(6, process_group=object()), "process group of its own"),
                            (Own(6), "0 is a Own: of SyncBatchNorm want torch's own class")):
            model = torch.nn.Sequential(layer, torch.nn.Linear(6, 1))
            with self.assertRaisesRegex(espalier.UsageError, what):
                adl.AdaptiveDataParallel(model, torch.optim.SGD(model.parameters(), 0.1))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
