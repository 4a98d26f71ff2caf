"""Manual optimization with ElasticTrainer: alone it trains as Lightning's Trainer does, to the bit; under a tuner two replicas
keep the curve of one over a resize and the loss of the first."""
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT / "tests/e2e")]
import torch  # noqa: E402
from forked import alone, resumed  # noqa: E402
from lightning.pytorch import Trainer  # noqa: E402
from lightning.pytorch.plugins import MixedPrecision  # noqa: E402
from lightning_curves import PLAIN, QUIET, Curves  # noqa: E402
from lightning_gan import Adversaries  # noqa: E402
from lightning_module import loaders  # noqa: E402
from small_program import values  # noqa: E402

import espalier  # noqa: E402
from espalier.integrations.lightning import ElasticTrainer  # noqa: E402


def trained(kind, module, **arguments):
    trainer = kind(**{"max_epochs": 3} | (PLAIN if kind is Trainer else QUIET) | arguments)
    trainer.fit(module, *loaders())
    return trainer, module


def order_of(way):
    return {"step_order": [1, 0]} if way == "critic first" else {}


class Alone(unittest.TestCase):
    def compare(self, way, made=dict, **arguments):
        plain, module = trained(Trainer, Adversaries(way), **made(), **arguments)
        trainer, own = trained(ElasticTrainer, Adversaries(way), **made(), **order_of(way), **arguments)
        self.assertTrue(torch.equal(values(module), values(own)))
        self.assertEqual((module.rates, module.indices), (own.rates, own.indices))
        self.assertEqual((trainer.global_step, trainer.current_epoch), (plain.global_step, plain.current_epoch))
        self.assertEqual(trainer.callback_metrics.keys(), plain.callback_metrics.keys())
        for name, value in plain.callback_metrics.items():
            self.assertAlmostEqual(value.item(), trainer.callback_metrics[name].item(), 5, name)
        self.assertFalse(torch.equal(values(own), values(Adversaries(way))))
        return trainer

    @alone
    def test_two_optimizers_that_are_toggled(self):
        trainer = self.compare("toggled")
        self.assertEqual(trainer.global_step, 42, "both are counted")

    @alone
    def test_gradients_that_another_loss_has_left_are_zeroed(self):
        self.compare("zeroed")

    @alone
    def test_the_second_is_stepped_first(self):
        self.compare("critic first")

    @alone
    def test_closures(self):
        self.compare("closures")

    @alone
    def test_one_that_is_not_stepped_in_each_batch(self):
        trainer = self.compare("now and then")
        self.assertEqual(trainer.strategy.parallel.skipped_steps, 0)

    @alone
    def test_a_single_optimizer(self):
        self.compare("one")

    @alone
    def test_loss_scaling(self):
        scale = lambda: {"plugins": [MixedPrecision("16-mixed", "cpu", torch.amp.GradScaler("cpu", init_scale=2.0**10))]}
        self.compare("toggled", scale)

    @alone
    def test_bf16_and_limits(self):
        self.compare("zeroed", precision="bf16-mixed", limit_train_batches=5, val_check_interval=2, max_steps=16)

    @alone
    def test_it_goes_on_from_the_trials_checkpoint(self):
        def program(epochs):
            trainer, module = trained(ElasticTrainer, Adversaries("toggled"), max_epochs=epochs)
            espalier.trial().finish()
            return values(module), trainer.global_step, module.rates[-1]

        (resumed_parameters, *same), checkpoint = resumed(program, 2, 5)
        self.assertLessEqual({"model", "optimizer", "optimizer.optimizer-1"}, checkpoint.keys())
        parameters, *others = program(5)
        self.assertTrue(torch.equal(parameters, resumed_parameters))
        self.assertEqual(others, same)
        self.assertEqual(others[0], 70)


class Refused(unittest.TestCase):
    @alone
    def test_another_order_than_was_said(self):
        module = Adversaries("critic first")
        with self.assertRaisesRegex(espalier.UsageError, r"optimizer 0 after optimizer 1.*step_order=\[1, 0\]"):
            trained(ElasticTrainer, module)

    @alone
    def test_an_order_that_is_none(self):
        with self.assertRaisesRegex(espalier.UsageError, r"step_order is \[0, 2\], and configure_optimizers gives 2"):
            trained(ElasticTrainer, Adversaries(), step_order=[0, 2])

    @alone
    def test_a_step_twice_in_a_batch(self):
        def step(x, y, _):
            for optimizer in (module.optimizers()[0],) * 2:
                optimizer.zero_grad()
                module.manual_backward(module.maker_loss(x, y))
                optimizer.step()
        module = Adversaries()
        module.step_toggled = step
        with self.assertRaisesRegex(espalier.UsageError, "stepped optimizer 0 twice"):
            trained(ElasticTrainer, module)

    def accumulating(self, zero):
        module = Adversaries()

        def step(x, y, batch_idx):
            optimizer = module.optimizers()[0]
            module.manual_backward(module.maker_loss(x, y))
            if batch_idx % 2:
                optimizer.step()
                zero(optimizer)
            return {"maker_loss": torch.zeros(())}
        module.step_toggled = step
        return module

    @alone
    def test_gradients_of_several_batches(self):
        with self.assertRaisesRegex(espalier.UsageError, "optimizer 0 is stepped with gradients of an earlier batch"):
            trained(ElasticTrainer, self.accumulating(lambda optimizer: optimizer.zero_grad()))

    @alone
    def test_gradients_that_are_never_zeroed(self):
        module = Adversaries()

        def step(x, y, _):
            module.manual_backward(module.maker_loss(x, y))
            module.optimizers()[0].step()
            return {"maker_loss": torch.zeros(())}
        module.step_toggled = step
        with self.assertRaisesRegex(espalier.UsageError, "optimizer 0 is stepped with gradients of an earlier batch"):
            trained(ElasticTrainer, module)

    @alone
    def test_gradients_that_another_loss_has_left_to_the_next_batch(self):
        module = Adversaries("critic first")

        def step(x, y, _):
            first, second = module.optimizers()
            for optimizer, loss_of in ((second, module.critic_loss), (first, module.maker_loss)):
                module.manual_backward(loss_of(x, y))
                optimizer.step()
                optimizer.zero_grad()
            return {"maker_loss": torch.zeros(())}
        module.step_critic_first = step
        with self.assertRaisesRegex(espalier.UsageError, "optimizer 1 is stepped with gradients of an earlier batch"):
            trained(ElasticTrainer, module, step_order=[1, 0])

    @alone
    def test_what_cannot_be_shared(self):
        def shared():
            return [torch.optim.SGD(module.maker.parameters(), 0.1), torch.optim.SGD(module.parameters(), 0.1)]
        module = Adversaries()
        module.configure_optimizers = shared
        with self.assertRaisesRegex(espalier.UsageError, "maker.0.weight is trained by optimizers 0 and 1"):
            trained(ElasticTrainer, module)

    @alone
    def test_parameters_of_another_type(self):
        with self.assertRaisesRegex(espalier.UsageError, "maker.0.weight is of torch.bfloat16"):
            trained(ElasticTrainer, Adversaries(), precision="bf16-true")

    @alone
    def test_accumulation(self):
        with self.assertRaisesRegex(espalier.UsageError, "accumulate_grad_batches is 2"):
            trained(ElasticTrainer, Adversaries(), accumulate_grad_batches=2)

    @alone
    def test_nothing_to_report(self):
        module = Adversaries()
        module.training_step = lambda batch, batch_idx: module.step_toggled(*batch, batch_idx) and None
        with self.assertRaisesRegex(espalier.UsageError, "returns no loss, and no val_loss is logged: want a trial_metric"):
            ElasticTrainer(max_epochs=1, **QUIET).fit(module, loaders()[0])


class Tuner(Curves):
    """A loss may take a batch's first step, and leave its second to those who are left."""

    def test_two_that_are_toggled_and_their_schedules(self):
        self.outlasts(["--manual", "toggled"], steps=60, rate=lambda epoch: 0.003 * 0.99 ** (30 * epoch))

    def test_the_second_first_with_clipping(self):
        self.outlasts(["--manual", "critic first"], steps=60)

    def test_what_another_loss_leaves_and_steps_now_and_then(self):
        # After three that had just joined it would start no more.
        self.outlasts(["--manual", "now and then"], steps=40, losses=3)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
