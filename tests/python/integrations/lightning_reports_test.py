"""What ElasticTrainer reports to the trial, of whatever a module logs, and what it says where that is not what one would expect."""
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[2] / "tests/e2e")]
import torch  # noqa: E402
from forked import alone, resumed  # noqa: E402
from lightning_curves import QUIET  # noqa: E402
from lightning_module import Regression, loaders  # noqa: E402
from said import listened  # noqa: E402

import espalier  # noqa: E402
from espalier.integrations.lightning import ElasticTrainer  # noqa: E402


class OfLoaders(Regression):
    """Validates on several loaders, each with a loss of its own."""

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        self.log("val_loss", 100.0 + dataloader_idx, batch_size=len(batch[0]))


class Unnamed(Regression):
    """Its validation logs another name."""

    def validation_step(self, batch, batch_idx):
        self.log("accuracy", 0.5)


class Shaped(Regression):
    """Logs what is no single real number beside what is, under names that a report has itself."""

    def on_train_epoch_end(self):
        self.log_dict({"step": 7, "value": torch.tensor([8.0]), "self": True, "gone": float("nan")})
        self.trainer.callback_metrics.update(confusion=torch.eye(2), wave=torch.tensor(1j))


class Lossless(Regression):
    """Has no loss, and takes its steps by itself."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(torch.nn.functional.mse_loss(self.net(batch[0]), batch[1]))
        optimizer.step()

    def validation_step(self, batch, batch_idx):
        self.log("accuracy", 0.5)


class Reports(unittest.TestCase):
    def reported(self, module, held_out=1, **arguments):
        training, one = loaders()
        with listened() as said:
            trainer = ElasticTrainer(**{"max_epochs": 2} | QUIET | arguments)
            trainer.fit(module, training, [one] * held_out if held_out > 1 else one if held_out else None)
        self.notes = [line for line in said.stderr.splitlines() if line.startswith("espalier: ElasticTrainer: ")]
        return said.reports

    def steps_and_values(self, *arguments, **more):
        return [(step, float(value)) for step, value, _ in self.reported(*arguments, **more)]

    def assert_said_once(self, *parts):
        self.assertEqual(len(self.notes), 1, self.notes)
        for part in parts:
            self.assertIn(part, self.notes[0])

    @alone
    def test_of_several_validation_loaders_the_first_ones_loss(self):
        self.assertEqual(self.steps_and_values(OfLoaders(), held_out=2), [(1, 100), (2, 100)])
        self.assert_said_once('reported to the trial is "val_loss/dataloader_idx_0"', "val_loss/dataloader_idx_1 as trial_metric")

    @alone
    def test_of_more_than_ten_validation_loaders(self):
        (_, value, figures), = self.reported(OfLoaders(), held_out=11, max_epochs=1)
        self.assertEqual((float(value), float(figures["val_loss/dataloader_idx_10"])), (100, 110))

    @alone
    def test_the_loader_that_is_named(self):
        named = self.steps_and_values(OfLoaders(), held_out=2, trial_metric="val_loss/dataloader_idx_1")
        self.assertEqual((named, self.notes), ([(1, 101), (2, 101)], []))

    @alone
    def test_a_validation_without_its_loss(self):
        for step, value, figures in self.reported(Unnamed()):
            self.assertAlmostEqual(float(value), float(figures["train_loss"]), 3, step)
            self.assertEqual(figures["accuracy"], "0.5")
        self.assert_said_once('no "val_loss" is logged', "the mean training loss", "accuracy, samples, train_loss, ")

    @alone
    def test_a_validation_that_is_left_out(self):
        self.assertEqual(len(self.reported(Regression(), limit_val_batches=0)), 2)
        self.assert_said_once('no "val_loss" is logged', "the mean training loss")

    @alone
    def test_no_validation_is_the_training_loss(self):
        for step, value, figures in self.reported(Regression(), held_out=0):
            self.assertAlmostEqual(float(value), float(figures["train_loss"]), 3, step)
        self.assertEqual(self.notes, [])

    @alone
    def test_validations_after_some_epochs(self):
        steps = [step for step, _ in self.steps_and_values(Regression(), max_epochs=5, check_val_every_n_epoch=2)]
        self.assertEqual((steps, self.notes), ([2, 4], []))

    @alone
    def test_no_epoch_with_a_validation(self):
        self.assertEqual(self.reported(Regression(), max_epochs=2, check_val_every_n_epoch=3), [])
        self.assert_said_once("nothing was reported", "none of its 2 epochs", "check_val_every_n_epoch is 3")

    @alone
    def test_an_epoch_without_a_validation_after_a_checkpoint(self):
        def program(epochs):
            self.reported(Regression(), max_epochs=epochs, check_val_every_n_epoch=2)
            return self.notes

        (notes, _) = resumed(program, 2, 3)
        self.assertEqual(notes, [])

    @alone
    def test_what_is_no_single_number_is_left_out_and_said(self):
        (_, _, figures), = self.reported(Shaped(), max_epochs=1)
        self.assertEqual([figures[name] for name in ("step", "value", "self", "gone")], ["7", "8", "1", "nan"])
        self.assertFalse({"confusion", "wave"} & figures.keys())
        self.assertEqual(len(self.notes), 2, self.notes)
        self.assertRegex("".join(self.notes), r'"confusion" is a Tensor of shape \(2, 2\)')
        self.assertRegex("".join(self.notes), r'"wave" is a Tensor of shape \(\) of torch.complex64')

    @alone
    def test_a_metric_for_the_trial_that_is_no_single_number(self):
        with self.assertRaisesRegex(espalier.UsageError, r'trial_metric is "confusion", and that is a Tensor of shape \(2, 2\)'):
            self.reported(Shaped(), trial_metric="confusion")

    @alone
    def test_no_loss_at_all(self):
        with self.assertRaisesRegex(espalier.UsageError, "no loss, and no val_loss is logged: want a trial_metric, one of accuracy"):
            self.reported(Lossless())


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
