"""ElasticTrainer against the release of lightning that scripts/setup-integrations.sh pins: alone it trains as Trainer does, to
the bit; under a tuner a trial keeps its curve over a second replica and the loss of the first."""
import os
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parent), str(ROOT / "tests/e2e")]
import torch  # noqa: E402
from forked import alone, resumed  # noqa: E402
from lightning.pytorch import Trainer  # noqa: E402
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint  # noqa: E402
from lightning.pytorch.plugins import MixedPrecision  # noqa: E402
from lightning_curves import PLAIN, QUIET, Curves  # noqa: E402
from lightning_module import Regression, loaders  # noqa: E402
from small_program import values  # noqa: E402

import espalier  # noqa: E402
import espalier.torch as adl  # noqa: E402
from espalier.integrations.lightning import ElasticTrainer  # noqa: E402

STEPS = 30  # an epoch


class Alone(unittest.TestCase):
    def trained(self, kind, module=None, loader=None, **arguments):
        module = module or Regression()
        trainer = kind(**{"max_epochs": 3} | (PLAIN if kind is Trainer else QUIET) | arguments)
        trainer.fit(module, *loaders(**loader or {}))
        return trainer, module

    def compare(self, schedule="epoch", loader=None, ours=None, **arguments):
        trainer, module = self.trained(Trainer, Regression(schedule=schedule), loader, **arguments)
        other, own = self.trained(ElasticTrainer, Regression(schedule=schedule), ours or loader, **arguments)
        self.assertTrue(torch.equal(values(module), values(own)))
        self.assertEqual(module.rates, own.rates)
        self.assertEqual((trainer.global_step, trainer.current_epoch), (other.global_step, other.current_epoch))
        self.assertEqual(trainer.callback_metrics.keys(), other.callback_metrics.keys())
        for name, value in trainer.callback_metrics.items():
            self.assertAlmostEqual(value.item(), other.callback_metrics[name].item(), 5, name)
        return other

    @alone
    def test_it_trains_as_trainer_does(self):
        self.compare(gradient_clip_val=1.0)

    @alone
    def test_a_schedule_of_steps(self):
        self.compare("step")

    @alone
    def test_a_schedule_by_a_metric(self):
        self.compare("plateau", max_epochs=5)

    @alone
    def test_workers_and_bf16(self):
        self.compare(precision="bf16-mixed", loader={"num_workers": 1}, gradient_clip_val=0.5,
                     gradient_clip_algorithm="value")

    @alone
    def test_loss_scaling(self):
        made = lambda: MixedPrecision("16-mixed", "cpu", torch.amp.GradScaler("cpu", init_scale=2.0**19))
        plain, module = self.trained(Trainer, plugins=[made()], gradient_clip_val=1.0)
        trainer, own = self.trained(ElasticTrainer, plugins=[made()], gradient_clip_val=1.0)
        self.assertTrue(torch.equal(values(module), values(own)))
        self.assertFalse(torch.equal(values(own), values(Regression())))
        self.assertEqual(trainer.global_step, plain.global_step)
        scaler = trainer.precision_plugin.scaler
        self.assertTrue(1 < scaler.get_scale() < 2.0**19, "it has come down to where gradients are finite")

    @alone
    def test_loss_scaling_with_accumulation(self):
        plugin = MixedPrecision("16-mixed", "cpu", torch.amp.GradScaler("cpu", init_scale=2.0**8))
        trainer, own = self.trained(ElasticTrainer, plugins=[plugin], loader={"batch_size": 20}, accumulate_grad_batches=2)
        self.assertEqual(trainer.global_step, 15)
        module = self.trained(Trainer, loader={"batch_size": 40})[1]
        torch.testing.assert_close(values(own), values(module), rtol=0.05, atol=0.02)

    @alone
    def test_callbacks_stop_it_and_save(self):
        with tempfile.TemporaryDirectory() as folder:
            made = lambda name: [EarlyStopping("train_loss", min_delta=1e6, patience=2),
                                 ModelCheckpoint(f"{folder}/{name}", monitor="val_loss", save_top_k=-1)]
            module = Regression()
            self.trained(Trainer, module, max_epochs=9, callbacks=made("plain"), enable_checkpointing=True)
            trainer, own = self.trained(ElasticTrainer, max_epochs=9, callbacks=made("ours"))
            self.assertEqual(trainer.current_epoch, 3)
            self.assertTrue(torch.equal(values(module), values(own)))
            saved = sorted(path.name for path in pathlib.Path(folder, "plain").iterdir())
            self.assertEqual(sorted(path.name for path in pathlib.Path(folder, "ours").iterdir()), saved)
            again = Regression.load_from_checkpoint(pathlib.Path(folder, "ours", saved[-1]))
            self.assertEqual(again.state_dict().keys(), own.state_dict().keys())

    @alone
    def test_accumulation_is_of_samples(self):
        module = self.trained(Trainer, loader={"batch_size": 40})[1]
        trainer, own = self.trained(ElasticTrainer, loader={"batch_size": 20}, accumulate_grad_batches=2)
        self.assertEqual(trainer.global_step, 15)
        torch.testing.assert_close(values(own), values(module), rtol=1e-4, atol=1e-5)
        self.assertEqual(trainer.callback_metrics["samples"], 200)

    @alone
    def test_max_steps_end_it_with_a_value(self):
        trainer, _ = self.trained(ElasticTrainer, max_epochs=-1, max_steps=10)
        self.assertEqual(trainer.global_step, 10)
        self.assertIn("val_loss", trainer.callback_metrics)

    @alone
    def test_it_goes_on_from_the_trials_checkpoint(self):
        def program(epochs):
            stopping = EarlyStopping("val_loss", min_delta=1e6, patience=3)
            trainer, module = self.trained(ElasticTrainer, Regression(schedule="step"), max_epochs=epochs,
                                           callbacks=[stopping])
            espalier.trial().finish()
            return values(module), trainer.current_epoch, trainer.global_step

        (resumed_parameters, *others), _ = resumed(program, 2, 6)
        parameters, *counts = program(6)
        self.assertTrue(torch.equal(parameters, resumed_parameters))
        self.assertEqual((counts, others), ([4, 28], [4, 28]), "the callback has counted on")

    @alone
    def test_what_it_cannot_do_is_said(self):
        for arguments in ({"strategy": "ddp"}, {"devices": 2}, {"overfit_batches": 3}, {"val_check_interval": "00:00:01:00"},
                          {"num_nodes": 2}, {"fast_dev_run": True}):
            (name, value), = arguments.items()
            with self.assertRaisesRegex(espalier.UsageError, f"ElasticTrainer: {name} is {value!r}: want "):
                ElasticTrainer(**arguments)
        with self.assertRaisesRegex(espalier.UsageError, "ckpt_path"):
            ElasticTrainer(**QUIET).fit(Regression(), ckpt_path="last")

    @alone
    def test_samples_that_it_cannot_deal_are_refused(self):
        sampler = torch.utils.data.WeightedRandomSampler([1.0] * 200, 200)
        with self.assertRaisesRegex(espalier.UsageError, "WeightedRandomSampler"):
            self.trained(ElasticTrainer, loader={"sampler": sampler})

    @alone
    def test_a_part_of_an_epoch(self):
        self.compare("step", limit_train_batches=3, limit_val_batches=1)

    @alone
    def test_a_share_of_an_epoch(self):
        self.compare(limit_train_batches=0.5, limit_val_batches=0.5, loader={"num_workers": 1})

    @alone
    def test_a_single_batch(self):
        trainer = self.compare(limit_train_batches=1)
        self.assertEqual(trainer.global_step, 3)

    @alone
    def test_no_batch(self):
        trainer, module = self.trained(ElasticTrainer, limit_train_batches=0)
        self.assertTrue(torch.equal(values(module), values(Regression())))

    @alone
    def test_a_last_batch_that_is_left_out(self):
        self.assertEqual(self.compare(loader={"drop_last": True}).callback_metrics["samples"], 192)

    @alone
    def test_limits_of_accumulated_batches(self):
        module = self.trained(Trainer, loader={"batch_size": 40}, limit_train_batches=3)[1]
        trainer, own = self.trained(ElasticTrainer, loader={"batch_size": 20}, accumulate_grad_batches=2, limit_train_batches=6)
        self.assertEqual(trainer.global_step, 9)
        torch.testing.assert_close(values(own), values(module), rtol=1e-4, atol=1e-5)

    @alone
    def test_a_limit_within_a_step(self):
        with self.assertRaisesRegex(espalier.UsageError, "limit_train_batches=5 makes an epoch of 5 batches.*a multiple of it"):
            self.trained(ElasticTrainer, loader={"batch_size": 20}, accumulate_grad_batches=2, limit_train_batches=5)

    @alone
    def test_max_steps_within_an_epoch(self):
        self.compare("step", max_epochs=-1, max_steps=9, val_check_interval=2)

    @alone
    def test_several_schedulers(self):
        self.compare("several", max_epochs=4)

    @alone
    def test_a_scheduler_of_every_third_step(self):
        self.compare("third")

    @alone
    def test_validation_within_an_epoch(self):
        self.compare("plateau", val_check_interval=2)

    @alone
    def test_validation_after_a_share_of_an_epoch(self):
        self.compare(val_check_interval=0.5)

    @alone
    def test_validation_that_counts_over_epochs(self):
        self.compare(val_check_interval=10, check_val_every_n_epoch=None, max_epochs=5)

    @alone
    def test_validation_after_more_batches_than_there_are(self):
        with self.assertRaisesRegex(espalier.UsageError, "val_check_interval is 8, and an epoch has 7 batches"):
            self.trained(ElasticTrainer, val_check_interval=8)

    @alone
    def test_it_stops_within_an_epoch(self):
        made = lambda: {"callbacks": [EarlyStopping("val_loss", min_delta=1e6, patience=2)]}
        plain, module = self.trained(Trainer, val_check_interval=2, **made())
        trainer, own = self.trained(ElasticTrainer, val_check_interval=2, **made())
        self.assertTrue(torch.equal(values(module), values(own)))
        self.assertEqual((trainer.global_step, trainer.current_epoch), (plain.global_step, plain.current_epoch))
        self.assertEqual(trainer.global_step, 6)

    @alone
    def test_a_scheduler_by_what_only_one_replica_has_seen(self):
        with self.assertRaisesRegex(espalier.UsageError, 'ReduceLROnPlateau has interval "step": want "epoch"'):
            self.trained(ElasticTrainer, Regression(schedule="plateau step"))

    @alone
    def test_a_validation_is_whole(self):
        training, held_out = loaders()
        held_out = adl.AdaptiveDataLoader(held_out.dataset)
        with self.assertRaisesRegex(espalier.UsageError, "validation loader is an AdaptiveDataLoader"):
            ElasticTrainer(num_sanity_val_steps=0, **QUIET).fit(Regression(), training, held_out)

    @alone
    def test_a_metric_that_nobody_logs(self):
        training, held_out = loaders()
        with self.assertRaisesRegex(espalier.UsageError, 'trial_metric is "accuracy", and logged are samples, train_loss'):
            ElasticTrainer(max_epochs=1, trial_metric="accuracy", **QUIET).fit(Regression(), training, held_out)


class Tuner(Curves):
    def test_the_curve_outlasts_a_second_replica_and_the_loss_of_the_first(self):
        self.outlasts([], steps=STEPS, rate=lambda epoch: 0.003 * 0.9 ** epoch)

    def test_parts_of_epochs_and_validations_in_them(self):
        self.outlasts(["--limit", "21", "--interval", "7"], steps=21, batches=21, validations=3,
                      rate=lambda epoch: 0.003 * 0.9 ** epoch)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
