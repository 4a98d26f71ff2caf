"""ElasticTrainer against the release of lightning that scripts/setup-integrations.sh pins: alone it trains as Trainer does, to
the bit; under a tuner a trial keeps its curve over a second replica and the loss of the first."""
import logging
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import warnings

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parent), str(ROOT / "tests/e2e")]
import torch  # noqa: E402
from forked import alone  # noqa: E402
from harness import wait_for  # noqa: E402
from two_replicas import TwoReplicas  # noqa: E402
from lightning.pytorch import Trainer  # noqa: E402
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint  # noqa: E402
from lightning.pytorch.plugins import MixedPrecision  # noqa: E402
from lightning_module import Regression, loaders  # noqa: E402
from small_program import values  # noqa: E402

import espalier  # noqa: E402
import espalier.torch as adl  # noqa: E402
from espalier.integrations.lightning import ElasticTrainer  # noqa: E402

PROBE = HERE / "lightning_trainer_probe.py"
STEPS = 30  # an epoch
PLAIN = {"accelerator": "cpu", "devices": 1, "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
         "enable_model_summary": False}
QUIET = {"enable_progress_bar": False, "enable_model_summary": False}
warnings.filterwarnings("ignore", module="lightning")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


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

        def in_child(epochs, where):
            if (child := os.fork()) == 0:
                torch.save(program(epochs), where)
                os._exit(0)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

        with tempfile.TemporaryDirectory() as folder:
            os.environ["ESPALIER_CHECKPOINT_DIR"] = folder
            in_child(2, f"{folder}/first")
            os.environ["ESPALIER_CHECKPOINT"] = str(max(pathlib.Path(folder).glob("step-*.pt"), key=os.path.getmtime))
            in_child(6, f"{folder}/resumed")
            del os.environ["ESPALIER_CHECKPOINT"]
            parameters, *counts = program(6)
            resumed, *others = torch.load(f"{folder}/resumed")
            self.assertTrue(torch.equal(parameters, resumed))
            self.assertEqual((counts, others), ([4, 28], [4, 28]), "the callback has counted on")

    @alone
    def test_what_it_cannot_do_is_said(self):
        for arguments in ({"strategy": "ddp"}, {"devices": 2}, {"limit_train_batches": 3}, {"val_check_interval": 0.5},
                          {"check_val_every_n_epoch": None}, {"num_nodes": 2}):
            with self.assertRaisesRegex(espalier.UsageError, next(iter(arguments))):
                ElasticTrainer(**arguments)
        with self.assertRaisesRegex(espalier.UsageError, "ckpt_path"):
            ElasticTrainer(**QUIET).fit(Regression(), ckpt_path="last")
        manual = Regression()
        manual.automatic_optimization = False
        with self.assertRaisesRegex(espalier.UsageError, "automatic_optimization"):
            ElasticTrainer(**QUIET).fit(manual)

    @alone
    def test_samples_that_it_cannot_deal_are_refused(self):
        sampler = torch.utils.data.WeightedRandomSampler([1.0] * 200, 200)
        with self.assertRaisesRegex(espalier.UsageError, "WeightedRandomSampler"):
            self.trained(ElasticTrainer, loader={"sampler": sampler})

    @alone
    def test_an_epoch_has_all_samples(self):
        with self.assertRaisesRegex(espalier.UsageError, "drop_last=False"):
            self.trained(ElasticTrainer, loader={"drop_last": True})

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


class Tuner(TwoReplicas):
    def test_the_curve_outlasts_a_second_replica_and_the_loss_of_the_first(self):
        command = [sys.executable, str(PROBE), str(self.dir / "stop")]
        self.serve(self.dir / "pool.db")
        agent = self.agent(2)
        space = {"lr": {"_type": "choice", "_value": [0.003]}}
        self.run_tuner("submit", self.study(command, trials=1, search_space=space, sampler="random"), "--service", self.grpc)

        self.await_two()
        self.lose_the_elder(agent, PROBE)
        before = len(self.trial()["values"])
        wait_for(lambda: len(self.trial()["values"]) > before + 1, "whole epochs of its own")
        (self.dir / "stop").touch()
        done = self.await_end()
        self.assertEqual([int(v["step"]) for v in done["values"]], list(range(1, len(done["values"]) + 1)))
        for epoch, value in enumerate(done["values"], 1):
            extra = value["extra"]
            self.assertEqual((extra["steps"], extra["validations"]), (epoch * STEPS, epoch))
            self.assertAlmostEqual(extra["rate"] / (0.003 * 0.9 ** epoch), 1, 4)
        logged = [v["extra"].get("samples", 0.0) for v in done["values"]]
        partly = [samples for samples in logged if samples != STEPS * 32]
        self.assertLessEqual(len(partly), 1, "only where a replica was lost some of what it had logged is missing")
        self.assertTrue(all(0 <= samples < STEPS * 32 for samples in partly), partly)
        (self.dir / "stop").unlink()
        alone_ = subprocess.run([*command, "--epochs", str(len(logged)), "--set", "lr=0.003"], text=True,
                                stdout=subprocess.PIPE, check=True)
        curve = [float(value) for value in re.findall(r"^report step=\d+ value=(\S+)", alone_.stdout, re.MULTILINE)]
        self.assertEqual(len(curve), len(logged))
        for epoch, (ours, one) in enumerate(zip(done["values"], curve), 1):
            self.assertAlmostEqual(float(ours["value"]), one, delta=0.02 * one, msg=f"epoch {epoch}")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
