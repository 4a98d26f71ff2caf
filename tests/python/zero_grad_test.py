"""zero_grad between two backward passes of a batch does what PyTorch's does, and gradients that no optimizer takes come
nowhere: on one replica, and on two."""
import json
import os
import pathlib
import sys
import unittest
import warnings

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from harness import LONG_S, TunerTest  # noqa: E402

import espalier.torch as adl  # noqa: E402
from espalier import UsageError  # noqa: E402
from forked import alone, in_child  # noqa: E402
from small_program import data, make, mse, net  # noqa: E402
import zeroed  # noqa: E402


class Alone(unittest.TestCase):
    @alone
    def test_within_a_step_of_several_batches_it_is_refused(self):
        model, optimizer, parallel, loader = make(loader={"local_bsz_bounds": (None, 10)})
        with self.assertRaisesRegex(UsageError, r"zero_grad\(\) between two backward\(\) of a batch that is not its step's "
                                                "first.*AdaptiveDataParallel: want steps of one batch"):
            for _ in adl.remaining_epochs_until(1):
                for x, y in loader:
                    optimizer.zero_grad()
                    mse(parallel(x), y).backward()
                    optimizer.zero_grad()
                    mse(parallel(x), y).backward()
                    optimizer.step()

    def two_of_one(self, between):
        model = net()
        optimizers = [torch.optim.SGD(model[i].parameters(), 0.01) for i in (0, 2)]
        parallel = adl.AdaptiveDataParallel(model, optimizers)
        loader = adl.AdaptiveDataLoader(torch.utils.data.TensorDataset(*data()), batch_size=20)
        for _ in adl.remaining_epochs_until(1):
            for x, y in loader:
                for optimizer in optimizers:
                    optimizer.zero_grad()
                mse(parallel(x), y).backward()
                between(optimizers[0])
                mse(parallel(x), y).backward()
                for optimizer in optimizers:
                    optimizer.step()
        return parallel.steps

    @alone
    def test_optimizers_that_step_together_allow_no_backward_in_between(self):
        def is_refused(between):
            with self.assertRaisesRegex(RuntimeError, r"backward\(\) after a step\(\) or zero_grad\(\) of one of its several "
                                                      "optimizers"):
                self.two_of_one(between)
            return True

        self.assertTrue(in_child(lambda: is_refused(lambda o: o.step())))
        self.assertTrue(in_child(lambda: is_refused(lambda o: o.zero_grad())))
        self.assertEqual(self.two_of_one(lambda o: None), 10)

    @alone
    def test_what_no_optimizer_has_is_named_once(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            zeroed.train("head", 1)
        said = [str(w.message) for w in said if "no optimizer" in str(w.message)]
        self.assertEqual(len(said), 1)
        self.assertIn("0.weight, 0.bias: With several replicas they get none", said[0].replace(". With", ": With"))


class Replicas(TunerTest):
    def test_programs_come_to_what_they_come_to_in_pytorch(self):
        """On one replica and on two, each sample once in an epoch, in whatever order."""
        for replicas in (1, 2):
            study = self.study([sys.executable, str(HERE / "zeroed.py"), str(self.dir / f"of-{replicas}")], name=f"of{replicas}",
                               trials=len(zeroed.WAYS), sampler="grid", max_restarts=0,
                               search_space={"way": {"_type": "choice", "_value": list(zeroed.WAYS)}},
                               slots={"min": replicas, "max": replicas})
            self.run_tuner("run", study, "--dir", self.dir / f"run-{replicas}", "--slots", replicas, timeout=LONG_S)
            trials = self.export("--db", self.dir / f"run-{replicas}/espalier.db", study=f"of{replicas}")["trials"]
            self.assertEqual({json.loads(t["parameters"][0]["json"]): t["state"] for t in trials},
                             dict.fromkeys(zeroed.WAYS, "TRIAL_COMPLETE"))
            for way in zeroed.WAYS:
                for rank in range(replicas):
                    with self.subTest(way, replicas=replicas, rank=rank):
                        got = torch.load(self.dir / f"of-{replicas}-{way}-{rank}")
                        torch.testing.assert_close(got, zeroed.plain(way), rtol=2e-4, atol=2e-5)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
