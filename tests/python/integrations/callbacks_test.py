"""Trainers that nobody changed but for one callback, with two processes under their own launchers: one trial."""
import json
import pathlib
import signal
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import LONG_S, TunerTest, wait_for  # noqa: E402

HUGGING_FACE = """import os, pathlib, sys, tempfile
sys.path.insert(0, sys.argv.pop(1))
import espalier, train
from espalier.integrations.transformers import TrialCallback
from transformers import Trainer

trial = espalier.trial()
with tempfile.TemporaryDirectory() as folder:
    arguments = train.make_arguments(trial, folder, 3, use_cpu=True, ddp_backend="gloo")
    trainer = Trainer(train.make_model(trial), arguments, train_dataset=train.Sentences(128, seed=1),
                      eval_dataset=train.Sentences(64, seed=2), callbacks=[TrialCallback()])
    trainer.train()
losses = [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry]
pathlib.Path(sys.argv[1], str(arguments.process_index)).write_text(f"{losses}")
os._exit(0)  # PyTorch's threads may meet the interpreter's end: "terminate called without an active exception"
"""
LIGHTNING = """import pathlib, sys
import lightning.pytorch as lightning
import torch
from espalier.integrations.lightning import TrialCallback
from torch.utils.data import DataLoader, TensorDataset


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)

    def loss(self, batch):
        return ((self.net(batch[0]) - batch[1]) ** 2).mean()

    def training_step(self, batch, index):
        return self.loss(batch)

    def validation_step(self, batch, index):
        self.log("val_loss", self.loss(batch), sync_dist=False)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), float(sys.argv[2]))


torch.manual_seed(1)
inputs = torch.randn(64, 4)
loader = DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), 16)
trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=3, logger=False, enable_progress_bar=False,
                            enable_checkpointing=False, callbacks=[TrialCallback()])
trainer.fit(Module(), loader, loader)
pathlib.Path(sys.argv[1], str(trainer.global_rank)).write_text(f"{trainer.current_epoch}")
"""

# The same, slowly while there is no file "fast"; they note what they begin with, and save when they are told to.
HUGGING_FACE_SAVES = """import os, pathlib, sys, time
sys.path.insert(0, sys.argv.pop(1))
import espalier, train
from espalier.integrations.transformers import TrialCallback
from transformers import Trainer
from transformers.trainer_utils import get_last_checkpoint

class Slow(train.Sentences):
    def __getitem__(self, index):
        time.sleep(0 if pathlib.Path(sys.argv[1], "fast").exists() else 0.02)
        return super().__getitem__(index)

trial, folder = espalier.trial(), os.environ["ESPALIER_CHECKPOINT_DIR"]
arguments = train.make_arguments(trial, folder, 20, use_cpu=True, ddp_backend="gloo")
arguments.per_device_train_batch_size, arguments.logging_strategy, arguments.logging_steps = 16, "steps", 1
trainer = Trainer(train.make_model(trial), arguments, train_dataset=Slow(96, seed=1),
                  eval_dataset=train.Sentences(64, seed=2), callbacks=[TrialCallback()])
saved = get_last_checkpoint(folder)
if arguments.process_index == 0:
    print(0 if saved is None else saved.rpartition("-")[2], file=open(pathlib.Path(sys.argv[1], "begun"), "a"))
trainer.train(resume_from_checkpoint=saved)
os._exit(0)  # as above
"""
LIGHTNING_SAVES = LIGHTNING.replace("import pathlib, sys", "import os, pathlib, sys, time").partition("trainer =")[0] + """

class Slow(lightning.Callback):
    def on_train_batch_end(self, trainer, *_):
        time.sleep(0 if pathlib.Path(sys.argv[1], "fast").exists() else 0.2)

    def on_train_start(self, trainer, *_):
        if trainer.global_rank == 0:
            print(trainer.global_step, file=open(pathlib.Path(sys.argv[1], "begun"), "a"))

kept = lightning.callbacks.ModelCheckpoint(os.environ["ESPALIER_CHECKPOINT_DIR"], save_last=True, every_n_epochs=100)
trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=20, logger=False, enable_progress_bar=False,
                            callbacks=[TrialCallback(), Slow(), kept])
trainer.fit(Module(), loader, loader, ckpt_path="last")
"""


class Callbacks(TunerTest):
    def run_study(self, command, **keys):
        study = self.study(command, search_space={"lr": {"_type": "choice", "_value": [0.01]}}, slots=2, trials=1, metric="loss",
                           **keys)
        run = self.dir / "run"
        self.run_tuner("run", study, "--dir", run, "--slots", 2, timeout=LONG_S)
        [trial] = self.export("--db", run / "espalier.db")["trials"]
        self.assertEqual(trial["state"], "TRIAL_COMPLETE", trial)
        self.assertEqual([int(value["step"]) for value in trial["values"]], [1, 2, 3])
        return [value["value"] for value in trial["values"]]

    def test_hugging_faces_by_torchrun(self):
        program = self.write("program.py", HUGGING_FACE)
        values = self.run_study([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", program,
                                 str(ROOT / "examples/python_transformers"), str(self.dir)])
        self.assertEqual(json.loads((self.dir / "0").read_text()), values)
        self.assertTrue((self.dir / "1").exists(), "both came to the end")

    def test_lightnings_by_its_own_launcher(self):
        values = self.run_study([sys.executable, self.write("program.py", LIGHTNING), str(self.dir), "{lr}"], ranks="mean")
        self.assertEqual([(self.dir / str(rank)).read_text() for rank in range(2)], ["3", "3"])
        self.assertTrue(all(later < before for before, later in zip(values, values[1:])), values)

    def save_and_go_on(self, command, **keys):
        """Stops the study between two epochs and lets it go on; the steps with which the program has begun."""
        study = self.study(command, search_space={"lr": {"_type": "choice", "_value": [0.01]}}, slots=2, trials=1, metric="loss", **keys)
        run = self.dir / "run"
        process = self.start("run", study, "--dir", run, "--slots", 2)
        told = lambda: [int(value["step"]) for value in self.export("--db", run / "espalier.db")["trials"][0]["values"]]
        wait_for(lambda: (self.dir / "begun").exists() and len(told()) > 1, "two epochs", LONG_S)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=LONG_S), 130, self.output(process))
        (self.dir / "fast").touch()
        before = told()
        self.run_tuner("run", study, "--dir", run, "--slots", 2, timeout=LONG_S)
        self.assertEqual(told(), list(range(1, 21)), "each epoch is evaluated once")
        self.assertLess(len(before), 20)
        first, again = map(int, (self.dir / "begun").read_text().split())
        self.assertEqual(first, 0)
        return again, len(before)

    def test_hugging_faces_saves_and_ends_when_it_is_told_to(self):
        again, epochs = self.save_and_go_on([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
                                             self.write("program.py", HUGGING_FACE_SAVES),
                                             str(ROOT / "examples/python_transformers"), str(self.dir)])
        self.assertIn(again, range(3 * epochs, 3 * epochs + 3), "within the next epoch, where it logs")

    def test_lightnings_saves_and_ends_after_an_epoch(self):
        again, epochs = self.save_and_go_on([sys.executable, self.write("program.py", LIGHTNING_SAVES), str(self.dir), "{lr}"],
                                            ranks="mean")
        self.assertEqual(again, 2 * epochs)


if __name__ == "__main__":
    unittest.main()
