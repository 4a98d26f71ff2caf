"""accumulate_grad_batches that is set after the trainer was made: the global batch is of so many of the loader's from the next
epoch on, with the rate as it is, as Trainer has it; on several replicas as on one."""
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[2] / "tests/e2e")]
import numpy  # noqa: E402
import torch  # noqa: E402
from forked import alone, resumed  # noqa: E402
from lightning.pytorch import Trainer  # noqa: E402
from lightning.pytorch.callbacks import Callback, GradientAccumulationScheduler, StochasticWeightAveraging  # noqa: E402
from lightning_curves import PLAIN, QUIET, Curves  # noqa: E402
from lightning_gan import Adversaries  # noqa: E402
from lightning_module import Regression, loaders  # noqa: E402
from small_program import values  # noqa: E402

import espalier  # noqa: E402
import espalier.torch as adl  # noqa: E402
from espalier.integrations.lightning import ElasticTrainer  # noqa: E402

SAMPLES = 256  # 8 batches of 32


class Sets(Callback):
    """In that hook of an epoch: a number, or one for each epoch."""

    def __init__(self, hook, number, epoch=None):
        self.number, self.epoch = number, epoch
        setattr(self, hook, self.set)

    def set(self, trainer, *_):
        if self.epoch in (None, trainer.current_epoch):
            trainer.accumulate_grad_batches = self.number(trainer.current_epoch) if callable(self.number) else self.number


class Steps(Callback):
    """The trial's at each epoch's end, and what is read of accumulate_grad_batches where one begins."""

    def __init__(self):
        self.ends, self.read = [], []

    def on_train_batch_start(self, trainer, *_):
        if trainer.global_step == (self.ends or [0])[-1]:
            self.read.append(trainer.accumulate_grad_batches)

    def on_train_epoch_end(self, trainer, module):
        self.ends.append(trainer.global_step)


class Trained(unittest.TestCase):
    def trained(self, kind, callbacks=(), module=None, samples=SAMPLES, before=None, loader=None, **arguments):
        module = module or Regression(adam=False, lr=0.003)
        self.steps = Steps()
        trainer = kind(**{"max_epochs": 4} | (PLAIN if kind is Trainer else QUIET) | arguments,
                       callbacks=[*callbacks, self.steps])
        if before:
            before(trainer)
        trainer.fit(module, *(loader or loaders(samples=samples)))
        return trainer, module


class Alone(Trained):
    def compare(self, ends, made, ours=None, schedule="epoch", **arguments):
        """ends: steps of the trial at each epoch's end."""
        trainer, module = self.trained(Trainer, made(), Regression(schedule=schedule, adam=False, lr=0.003), **arguments)
        plain = self.steps
        other, own = self.trained(ElasticTrainer, made(), Regression(schedule=schedule, adam=False, lr=0.003),
                                  **arguments, **ours or {})
        self.assertEqual((plain.ends, self.steps.ends), (ends, ends))
        self.assertEqual(plain.read, self.steps.read)
        self.assertEqual(module.rates, own.rates)
        torch.testing.assert_close(values(own), values(module), rtol=1e-4, atol=1e-5)
        self.assertEqual(trainer.callback_metrics.keys(), other.callback_metrics.keys())
        for name in ("val_loss", "train_loss_epoch"):  # as Trainer logs it, not divided
            self.assertAlmostEqual(other.callback_metrics[name].item() / trainer.callback_metrics[name].item(), 1, 3, name)
        return other

    @alone
    def test_a_schedule_of_accumulation(self):
        self.compare([8, 16, 18, 20], lambda: [GradientAccumulationScheduler({0: 1, 2: 4})])

    @alone
    def test_whatever_the_rule_the_rate_stays(self):
        self.compare([8, 10, 14, 22], lambda: [GradientAccumulationScheduler({0: 1, 1: 4, 2: 2, 3: 1})],
                     ours={"scaling_rule": "linear"}, schedule="step")

    @alone
    def test_the_usual_rule_with_adam(self):
        made = lambda: [GradientAccumulationScheduler({0: 2, 1: 4})]
        module = self.trained(Trainer, made(), Regression())[1]
        own = self.trained(ElasticTrainer, made(), Regression())[1]
        torch.testing.assert_close(values(own), values(module), rtol=1e-3, atol=1e-4)
        self.assertEqual(self.steps.ends, [4, 6, 8, 10])

    @alone
    def test_set_at_an_epochs_start(self):
        self.compare([8, 12, 16, 20], lambda: [Sets("on_train_epoch_start", 2, epoch=1)])

    @alone
    def test_set_at_an_epochs_end(self):
        self.compare([8, 12, 16, 20], lambda: [Sets("on_train_epoch_end", 2, epoch=0)])

    @alone
    def test_set_after_a_validation(self):
        self.compare([8, 12, 14, 16], lambda: [Sets("on_validation_end", lambda epoch: 2 ** min(epoch + 1, 2))],
                     num_sanity_val_steps=0)

    @alone
    def test_set_when_training_starts(self):
        self.compare([4, 8, 12, 16], lambda: [Sets("on_train_start", 2)])

    @alone
    def test_set_in_a_callback_that_the_module_brings(self):
        class Bringing(Regression):
            def configure_callbacks(self):
                return [GradientAccumulationScheduler({0: 1, 1: 2})]

        trainer = self.trained(ElasticTrainer, module=Bringing())[0]
        self.assertEqual((self.steps.ends, trainer.accumulate_grad_batches), ([8, 12, 16, 20], 2))

    @alone
    def test_set_before_training_and_read(self):
        for before in ({"accumulate_grad_batches": 2}, {}):
            trainer = ElasticTrainer(max_epochs=1, **QUIET, **before)
            trainer.accumulate_grad_batches = numpy.int64(4)
            self.assertEqual(trainer.accumulate_grad_batches, 4)
        self.compare([2, 4, 6, 8], list, before=lambda trainer: setattr(trainer, "accumulate_grad_batches", 4))

    @alone
    def test_set_back_before_it_counts(self):
        self.compare([8, 16, 24, 32], lambda: [Sets("on_train_epoch_end", 4), Sets("on_train_epoch_end", 1)])

    @alone
    def test_parts_of_epochs_and_validations_in_them(self):
        own = self.compare([4, 6, 7, 8], lambda: [GradientAccumulationScheduler({0: 1, 1: 2, 2: 4})], limit_train_batches=4,
                           val_check_interval=4)
        self.assertEqual(own.num_training_batches, 1)

    @alone
    def test_what_schedulers_are_made_for(self):
        seen = []

        class Asking(Regression):
            def configure_optimizers(self):
                seen.append(self.trainer.estimated_stepping_batches)
                return super().configure_optimizers()

        self.trained(ElasticTrainer, module=Asking(), accumulate_grad_batches=2)
        self.assertEqual((seen, self.steps.ends), ([16], [4, 8, 12, 16]))

    @alone
    def test_a_last_step_of_fewer_samples(self):
        trainer, _ = self.trained(ElasticTrainer, [GradientAccumulationScheduler({0: 1, 1: 4})], samples=200)
        self.assertEqual(self.steps.ends, [7, 9, 11, 13])
        self.assertEqual(trainer.callback_metrics["samples"], 200)

    @alone
    def test_a_pass_in_which_no_step_is_due(self):
        """StochasticWeightAveraging lets batch statistics follow the averaged weights, and says so by this number."""
        trained = []
        for kind in (Trainer, ElasticTrainer):
            module = Regression(adam=False, lr=0.003)
            module.net.insert(1, torch.nn.BatchNorm1d(16))
            trainer, _ = self.trained(kind, [StochasticWeightAveraging(0.001, swa_epoch_start=2)], module)
            trained.append((values(module), module.net[1].running_mean))
        torch.testing.assert_close(trained[1], trained[0])
        self.assertEqual(trainer.accumulate_grad_batches, 1)

    def goes_on(self, made, ends):
        """From the trial's checkpoint after two epochs, the third not being finished."""
        def program(epochs):
            module = self.trained(ElasticTrainer, made(), max_epochs=epochs)[1]
            espalier.trial().finish()
            return values(module), self.steps.ends

        (parameters, steps), _ = resumed(program, 3, 4)
        self.assertEqual(steps, ends)
        torch.testing.assert_close(parameters, program(4)[0], rtol=1e-5, atol=1e-6)

    @alone
    def test_a_checkpoint_beside_a_schedule(self):
        self.goes_on(lambda: [GradientAccumulationScheduler({0: 1, 1: 2, 3: 4})], [16, 18])

    @alone
    def test_a_checkpoint_after_it_was_set_once(self):
        self.goes_on(lambda: [Sets("on_train_epoch_start", 2, epoch=1)], [16, 20])

    @alone
    def test_a_checkpoint_between_it_and_its_epoch(self):
        self.goes_on(lambda: [Sets("on_train_epoch_end", 2, epoch=1)], [20, 24])


class Refused(Trained):
    def refused(self, wanted, callbacks=(), **arguments):
        with self.assertRaisesRegex(espalier.UsageError, wanted):
            self.trained(ElasticTrainer, callbacks, **arguments)

    @alone
    def test_in_mid_epoch(self):
        self.refused("was set to 2 within an epoch, where it is 1: set it where an epoch begins or ends",
                     [Sets("on_train_batch_end", 2, epoch=1)])
        self.assertEqual(self.steps.ends, [8])

    @alone
    def test_before_the_first_batch_is_trained(self):
        self.refused("was set to 2 within an epoch", [Sets("on_train_batch_start", 2)])

    @alone
    def test_in_a_validation_within_an_epoch(self):
        self.refused("was set to 2 within an epoch", [Sets("on_validation_end", 2)], val_check_interval=4,
                     num_sanity_val_steps=0)

    @alone
    def test_what_is_no_positive_whole_number(self):
        for number in (0, -1, 2.0, "2", None, True, {0: 2}):
            trainer = ElasticTrainer(max_epochs=1, **QUIET)
            with self.assertRaisesRegex(espalier.UsageError, "accumulate_grad_batches is .*: want a positive whole number"):
                trainer.accumulate_grad_batches = number
            self.assertEqual(trainer.accumulate_grad_batches, 1)
        self.refused("accumulate_grad_batches is 0: want a positive", [Sets("on_train_epoch_start", 0, epoch=1)])

    @alone
    def test_manual_optimization(self):
        self.refused("accumulate_grad_batches is 2, and the module has automatic_optimization=False",
                     [Sets("on_train_epoch_start", 2, epoch=1)], module=Adversaries("toggled", 0.003, 0.0))

    @alone
    def test_manual_optimization_before_training(self):
        self.refused("accumulate_grad_batches is 2, and the module has automatic_optimization=False",
                     module=Adversaries("toggled", 0.003, 0.0),
                     before=lambda trainer: setattr(trainer, "accumulate_grad_batches", 2))

    @alone
    def test_a_loader_that_accumulates_itself(self):
        training, held_out = loaders(samples=SAMPLES)
        self.refused("the training loader is an AdaptiveDataLoader, which accumulates by local_bsz_bounds: want 1",
                     [Sets("on_train_epoch_start", 2, epoch=1)],
                     loader=(adl.AdaptiveDataLoader(training.dataset, batch_size=32), held_out))

    @alone
    def test_a_schedule_is_looked_at_before_training(self):
        self.refused("limit_train_batches=6 makes an epoch of 6 batches, and accumulate_grad_batches is 4",
                     [GradientAccumulationScheduler({0: 1, 3: 4})], limit_train_batches=6)
        self.assertEqual(self.steps.ends, [])

    @alone
    def test_validations_within_a_step(self):
        self.refused("val_check_interval=6 is 6 batches, and accumulate_grad_batches is 4",
                     [Sets("on_train_epoch_end", 4)], val_check_interval=6)

    @alone
    def test_more_than_an_epoch_from_the_beginning(self):
        self.refused("accumulate_grad_batches is 16, and 16 batches of 32 samples are more than an epoch's 256",
                     accumulate_grad_batches=16)

    @alone
    def test_more_than_an_epoch(self):
        self.refused("accumulate_grad_batches is 16, and 16 batches of 32 samples are more than an epoch's 256",
                     [Sets("on_train_epoch_end", 16)])

    @alone
    def test_a_scheduler_that_counts_batches(self):
        self.refused('interval "step" and frequency 3, and accumulate_grad_batches is 2', [Sets("on_train_epoch_end", 2)],
                     module=Regression(schedule="third"))


class Tuner(Curves):
    def test_the_batch_of_each_epoch_outlasts_a_second_replica_and_the_loss_of_the_first(self):
        self.outlasts(["--accumulation", "start"], rate=lambda epoch: 0.003 * 0.9 ** epoch, steps=self.steps_until)

    def test_a_batch_that_was_set_when_an_epoch_ended(self):
        self.outlasts(["--accumulation", "end"], rate=lambda epoch: 0.003 * 0.9 ** epoch, steps=self.steps_until)

    @staticmethod
    def steps_until(epoch):
        return sum(30 // (1 + before % 3) for before in range(epoch))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
