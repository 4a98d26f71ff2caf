"""ElasticTrainer against the release of transformers that scripts/setup-integrations.sh pins: alone it trains as Trainer does,
to the bit; under a tuner a trial keeps its curve over a second replica and the loss of the first."""
import os
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parent), str(ROOT / "tests/e2e"), str(ROOT / "examples/python_transformers")]
import torch  # noqa: E402
import train  # noqa: E402
from forked import alone, resumed  # noqa: E402
from said import listened  # noqa: E402
from two_replicas import TwoReplicas  # noqa: E402
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback  # noqa: E402

import espalier  # noqa: E402
from espalier.integrations.transformers import ElasticTrainer  # noqa: E402

PROBE = HERE / "trainer_probe.py"
EPOCHS, SAMPLES, BATCH = 10, 3200, 64
STEPS = -(-SAMPLES // BATCH)  # an epoch
FIXED = {"batch_size": BATCH, "dropout": 0.0, "lr": 0.0003, "seed": 7}


class Alone(unittest.TestCase):
    def trained(self, kind, samples=320, set_=("dropout=0.0",), epochs=2, callbacks=(), trial_metric=None, eval_dataset=None,
                compute_metrics=train.accuracy, **arguments):
        sys.argv = ["train.py", *[word for name in set_ for word in ("--set", name)]]
        trial = espalier.trial()
        with tempfile.TemporaryDirectory() as folder:
            own = train.make_arguments(trial, folder, epochs, train_sampling_strategy="sequential")
            for name, value in arguments.items():
                setattr(own, name, value)
            more = {"trial_metric": trial_metric} if trial_metric else {}
            trainer = kind(train.make_model(trial), own, train_dataset=train.Sentences(samples, seed=1),
                           eval_dataset=eval_dataset or train.Sentences(100, seed=2), compute_metrics=compute_metrics,
                           callbacks=list(callbacks), **more)
            trainer.train()
        return trainer

    @alone
    def test_it_trains_as_trainer_does(self):
        self.compare({})

    @alone
    def test_it_logs_and_evaluates_by_steps(self):
        self.compare({"logging_strategy": "steps", "logging_steps": 3, "eval_strategy": "steps", "eval_steps": 4,
                      "max_steps": 8})

    def compare(self, more):
        plain = self.trained(Trainer, **more)
        ours = self.trained(ElasticTrainer, **more)
        for (name, a), b in zip(plain.model.named_parameters(), ours.model.parameters()):
            self.assertTrue(torch.equal(a, b), name)
        self.assertEqual(ours.state.global_step, plain.state.global_step)
        self.assertEqual(len(ours.state.log_history), len(plain.state.log_history))
        for a, b in zip(plain.state.log_history, ours.state.log_history):
            self.assertEqual(a.keys(), b.keys())
            for key in a.keys() - {k for k in a if k.endswith(("_runtime", "_per_second")) or k == "total_flos"}:
                self.assertAlmostEqual(float(a[key]), float(b[key]), 5, key)

    @alone
    def test_accumulation_and_bf16(self):
        trainer = self.trained(ElasticTrainer, per_device_train_batch_size=32, gradient_accumulation_steps=2, bf16=True)
        self.assertEqual(trainer.state.global_step, 2 * 320 // 64)
        self.assertTrue(torch.isfinite(torch.tensor(trainer.state.log_history[0]["loss"])))

    @alone
    def test_it_saves_what_trainer_saves(self):
        saved = []

        class Saved(TrainerCallback):
            def on_save(self, args, state, control, **kwargs):
                folder = pathlib.Path(args.output_dir) / f"checkpoint-{state.global_step}"
                saved.append({path.name for path in folder.iterdir()})

        self.trained(ElasticTrainer, save_strategy="epoch", eval_strategy="no", callbacks=[Saved()])
        self.assertEqual(len(saved), 2)
        self.assertLessEqual({"model.safetensors", "optimizer.pt", "scheduler.pt", "trainer_state.json"}, saved[0])

    @alone
    def test_callbacks_stop_it(self):
        trainer = self.trained(ElasticTrainer, epochs=9, set_=("dropout=0.0", "lr=0.0"), metric_for_best_model="loss",
                               greater_is_better=False, callbacks=[EarlyStoppingCallback(2)])
        self.assertEqual(trainer.state.epoch, 3)

    @alone
    def test_what_it_cannot_do_is_said(self):
        for name, value in (("load_best_model_at_end", True), ("auto_find_batch_size", True),
                            ("train_sampling_strategy", "group_by_length")):
            with self.assertRaisesRegex(espalier.UsageError, name):
                self.trained(ElasticTrainer, **{name: value})


class Sets(TrainerCallback):
    """gradient_accumulation_steps, in that event of an epoch."""

    def __init__(self, event, number, epoch=0):
        self.number, self.epoch = number, epoch
        setattr(self, event, self.set)

    def set(self, args, state, control, **kwargs):
        if int(state.epoch or 0) == self.epoch:
            args.gradient_accumulation_steps = self.number


class Ends(TrainerCallback):
    """Steps at each epoch's end."""

    def __init__(self):
        self.steps = []

    def on_epoch_end(self, args, state, control, **kwargs):
        self.steps.append(state.global_step)


class Dividing(Trainer):
    """Of the means of a step's batches it takes the mean, and not the sum where the model leaves what it is told unused."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.model_accepts_loss_kwargs = False


class Accumulation(unittest.TestCase):
    """That a callback sets while it trains: 10 batches of 32 an epoch."""

    def trained(self, kind, *callbacks, **more):
        self.ends = Ends()
        return Alone.trained(self, kind, per_device_train_batch_size=32, callbacks=[*callbacks, self.ends],
                             **{"epochs": 3} | more)

    def compare(self, made, ends):
        more = {"optim": "sgd", "set_": ("dropout=0.0", "lr=0.1")}
        plain = self.trained(Dividing, *made(), **more)
        self.assertEqual(self.ends.steps, ends)
        ours = self.trained(ElasticTrainer, *made(), **more)
        self.assertEqual(self.ends.steps, ends)
        for (name, a), b in zip(plain.model.named_parameters(), ours.model.parameters()):
            torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-6, msg=name)
        self.assertEqual(ours.args.gradient_accumulation_steps, plain.args.gradient_accumulation_steps)

    @alone
    def test_set_where_an_epoch_begins(self):
        self.compare(lambda: [Sets("on_epoch_begin", 5, epoch=1)], [10, 12, 14])

    @alone
    def test_set_where_an_epoch_ends(self):
        self.compare(lambda: [Sets("on_epoch_end", 2, epoch=1)], [10, 15, 20])

    @alone
    def test_set_when_training_begins(self):
        self.trained(ElasticTrainer, Sets("on_train_begin", 2))
        self.assertEqual(self.ends.steps, [5, 10, 15])

    @alone
    def test_a_checkpoint_after_it_was_set_once(self):
        def program(epochs):
            self.trained(ElasticTrainer, Sets("on_epoch_begin", 5, epoch=1), epochs=epochs)
            espalier.trial().finish()
            return self.ends.steps

        steps, _ = resumed(program, 3, 4)
        self.assertEqual(steps, [16])

    def refused(self, wanted, callback):
        with self.assertRaisesRegex(espalier.UsageError, f"gradient_accumulation_steps {wanted}"):
            self.trained(ElasticTrainer, callback)

    @alone
    def test_set_in_mid_epoch(self):
        self.refused("was set to 2 within an epoch, where it is 1", Sets("on_step_end", 2))
        self.assertEqual(self.ends.steps, [])

    @alone
    def test_set_to_no_number(self):
        self.refused("is 2.0: want a positive whole number", Sets("on_epoch_begin", 2.0))

    @alone
    def test_set_to_more_than_an_epoch(self):
        self.refused("is 11, and 11 batches of 32 samples are more than an epoch's 320", Sets("on_epoch_begin", 11))


class Reports(unittest.TestCase):
    """What the trial hears, and what is said where that is not what one would expect."""

    def reported(self, **more):
        with listened() as said:
            Alone.trained(self, ElasticTrainer, **more)
        self.notes = [line for line in said.stderr.splitlines() if line.startswith("espalier: ElasticTrainer: ")]
        return said.reports

    def assert_said_once(self, *parts):
        self.assertEqual(len(self.notes), 1, self.notes)
        for part in parts:
            self.assertIn(part, self.notes[0])

    @alone
    def test_of_several_data_sets_the_first_ones_loss(self):
        sets = {"long": train.Sentences(100, seed=2), "short": train.Sentences(20, seed=3)}
        reports = self.reported(eval_dataset=sets)
        self.assertEqual([step for step, _, _ in reports], [1, 2])
        self.assertLessEqual({"eval_short_loss", "eval_long_accuracy", "eval_short_accuracy"}, reports[0][2].keys())
        self.assertNotIn("eval_long_loss", reports[0][2])
        self.assert_said_once('reported to the trial is "eval_long_loss"', "eval_short_loss as trial_metric")

    @alone
    def test_the_data_set_that_is_named(self):
        sets = {"long": train.Sentences(100, seed=2), "short": train.Sentences(20, seed=3)}
        (_, _, figures), *_ = self.reported(eval_dataset=sets, metric_for_best_model="eval_short_loss")
        self.assertIn("eval_long_loss", figures)
        self.assertEqual(self.notes, [])

    def refused(self, wanted, **more):
        with self.assertRaisesRegex(espalier.UsageError, wanted):
            self.reported(**more)

    @alone
    def test_a_best_metric_that_there_is_not(self):
        self.refused('metric_for_best_model is "eval_f1", and the evaluation gives eval_accuracy, ', metric_for_best_model="f1")

    @alone
    def test_a_metric_that_there_is_not(self):
        self.refused('trial_metric is "eval_f1", and the evaluation gives eval_accuracy, ', trial_metric="f1")

    @alone
    def test_a_metric_of_no_evaluation(self):
        self.refused('trial_metric is "eval_accuracy", and eval_strategy is "no"', trial_metric="accuracy", eval_strategy="no")

    @alone
    def test_no_evaluation_is_the_training_loss_and_said(self):
        self.assertEqual([step for step, _, _ in self.reported(eval_strategy="no")], [1, 2])
        self.assert_said_once('eval_strategy is "no"', "the mean training loss", '"eval_loss"')

    @alone
    def test_evaluations_that_a_callback_asks_for(self):
        class Asks(TrainerCallback):
            def on_epoch_end(self, args, state, control, **kwargs):
                control.should_evaluate = True
                return control

        reports = self.reported(eval_strategy="no", callbacks=[Asks()])
        self.assertEqual([(step, figures) for step, _, figures in reports], [(1, {}), (2, {})])
        self.assertEqual(len(self.notes), 2, self.notes)
        self.assertIn("an evaluation is not reported", self.notes[1])

    @alone
    def test_no_evaluation_comes(self):
        self.assertEqual(self.reported(eval_delay=9), [])
        self.assert_said_once("nothing was reported", "eval_delay 9")

    @alone
    def test_what_is_no_single_number_is_left_out_and_said(self):
        metrics = lambda _: {"table": torch.eye(2).numpy(), "step": 3, "value": torch.tensor([4.0])}
        (_, _, figures), *_ = self.reported(compute_metrics=metrics)
        self.assertEqual((figures["eval_step"], figures["eval_value"]), ("3", "4"))
        self.assert_said_once('"eval_table" is a ndarray of shape (2, 2)')


class Tuner(TwoReplicas):
    def test_the_curve_outlasts_a_second_replica_and_the_loss_of_the_first(self):
        hurry = self.dir / "hurry"
        command = [sys.executable, str(PROBE), "--epochs", str(EPOCHS), "--samples", str(SAMPLES), "--hurry", str(hurry)]
        self.submit(command, FIXED, preload=["transformers"])

        self.await_two()
        self.lose_rank_0(PROBE)
        self.run_tuner("pin", self.name, 0, "--slots", 1, "--service", self.grpc)
        hurry.touch()
        done = self.await_end()
        self.assertEqual([int(v["step"]) for v in done["values"]], list(range(1, EPOCHS + 1)))
        for epoch, value in enumerate(done["values"], 1):
            extra = value["extra"]
            self.assertEqual((extra["eval_steps"], extra["eval_evaluations"]), (epoch * STEPS, epoch - 1), epoch)
            self.assertEqual(extra["eval_logs"], 2 * epoch - 1, epoch)
        self.assertLess(done["values"][-1]["extra"]["eval_rate"], 1e-8)
        self.assertIn(f"{EPOCHS * STEPS} steps", self.logs())
        self.name += "_alone"
        self.submit(command, FIXED, slots={"min": 1, "max": 1}, preload=["transformers"])
        curve = [float(value["value"]) for value in self.await_end()["values"]]
        self.assertEqual(len(curve), EPOCHS)
        for epoch, (ours, one) in enumerate(zip(done["values"], curve), 1):
            self.assertAlmostEqual(float(ours["value"]), one, delta=0.05 * one, msg=f"epoch {epoch}")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
