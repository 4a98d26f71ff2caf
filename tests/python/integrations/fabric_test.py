"""ElasticStrategy against the release of lightning that scripts/setup-integrations.sh pins."""
import os
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parent), str(ROOT / "tests/e2e")]
import torch  # noqa: E402
from forked import alone  # noqa: E402
from harness import wait_for  # noqa: E402
from two_replicas import TwoReplicas  # noqa: E402
from lightning.fabric import Fabric  # noqa: E402
from small_program import data, net, plain_batches, values  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

import espalier  # noqa: E402
import espalier.torch as adl  # noqa: E402
from espalier.integrations.lightning import ElasticStrategy  # noqa: E402

PROBE = HERE / "fabric_probe.py"


class Alone(unittest.TestCase):
    def set_up(self, fabric):
        model = net()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        return fabric.setup(model, optimizer, scheduler=schedule)

    def step(self, fabric, model, optimizer, inputs, targets):
        fabric.backward(torch.nn.functional.mse_loss(model(inputs), targets))
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
        optimizer.zero_grad()

    @alone
    def test_it_trains_as_fabric_does(self):
        x, y = data()
        fabric = Fabric(accelerator="cpu", devices=1)
        plain, optimizer, scheduler = self.set_up(fabric)
        for _ in range(3):
            for inputs, targets in plain_batches(x, y, 32):
                self.step(fabric, plain, optimizer, inputs, targets)
            scheduler.step()

        fabric = Fabric(accelerator="cpu", devices=1, strategy=ElasticStrategy())
        ours, optimizer, scheduler = self.set_up(fabric)
        loader = fabric.setup_dataloaders(adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=32))
        for _ in adl.epochs(3):
            for inputs, targets in loader:
                self.step(fabric, ours, optimizer, inputs, targets)
            scheduler.step()
            self.assertEqual(fabric.all_reduce(torch.tensor([3.0])).item(), 3.0)
            self.assertEqual(fabric.all_gather(torch.tensor(3)).tolist(), [3])
            self.assertEqual(fabric.broadcast({"a": 1}), {"a": 1})
        self.assertTrue(torch.equal(values(plain), values(ours)))
        with tempfile.TemporaryDirectory() as folder:
            fabric.save(f"{folder}/saved", {"model": ours})
            self.assertEqual(set(torch.load(f"{folder}/saved")["model"]), set(net().state_dict()))
            with torch.no_grad():
                next(ours.parameters()).zero_()
            fabric.load(f"{folder}/saved", {"model": ours})
        self.assertTrue(torch.equal(values(plain), values(ours)))

    @alone
    def test_a_model_without_its_optimizer_is_refused(self):
        fabric = Fabric(accelerator="cpu", devices=1, strategy=ElasticStrategy())
        with self.assertRaisesRegex(espalier.UsageError, "without its optimizers"):
            fabric.setup_module(net())
        with self.assertRaisesRegex(espalier.UsageError, "reduce_op"):
            fabric.all_reduce(torch.ones(1), reduce_op="max")


class Tuner(TwoReplicas):
    def test_a_trial_outlasts_a_second_replica_and_the_loss_of_the_first(self):
        self.submit([sys.executable, str(PROBE), str(self.dir / "stop")], {"lr": 0.01})

        self.await_two()
        wait_for(lambda: any(v["extra"]["ranks"] for v in self.trial()["values"]), "an epoch of both")
        self.lose_rank_0(PROBE)
        before = len(self.trial()["values"])
        wait_for(lambda: len(self.trial()["values"]) > before, "its next report")
        (self.dir / "stop").touch()
        done = self.await_end()
        self.assertEqual([int(v["step"]) for v in done["values"]], list(range(1, len(done["values"]) + 1)))
        for v in done["values"]:
            self.assertAlmostEqual(v["extra"]["rate"], 0.01 * 0.99 ** (int(v["step"]) - 1))
            self.assertEqual(v["extra"]["by"], 0)
        self.assertLess(float(done["values"][-1]["value"]), 0.5 * float(done["values"][0]["value"]))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
