"""Programs with what PyTorch's users have around their loops, for library_steps.py.

    library_program.py KIND FOLDER    trains until there is FOLDER/stop; each replica writes its steps to FOLDER/logs/PID as
                                      bench_resize_trial does, and its device to FOLDER/devices/PID

scaled: autocast, a GradScaler, and a DataLoader with two workers and pinned memory; compiled: torch.compile; lightning and
fabric: Lightning's Trainer and Fabric, in mixed precision; transformers: Hugging Face's Trainer, in bfloat16."""
import os
import pathlib
import sys
import tempfile
import time

import torch
import torch.nn.functional as F
from python_program import BATCH, SAMPLES, data, net
from torch.utils.data import TensorDataset

import espalier
import espalier.torch as adl

trial = espalier.trial()
on_gpu = trial.device.type == "cuda"


class Record:
    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        self._log = open(self._folder / "logs" / str(os.getpid()), "w", encoding="utf-8")

    def device(self, model):
        where = str(next(model.parameters()).device)
        (self._folder / "devices" / str(os.getpid())).write_text(where, encoding="utf-8")

    def step(self, steps):
        position = espalier._runtime.runtime().position
        print(f"{time.monotonic():.6f}", position.generation, adl.rank(), adl.replicas(), steps, file=self._log, flush=True)

    def is_over(self):
        """Whether any replica sees that it is to stop: all have to come here."""
        return adl.evaluate(lambda _: {"stop": float((self._folder / "stop").exists())}, adl.replicas(), 1)["stop"] > 0


def right_of(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def own_loop(record, loader, model, step, parallel):
    """`step(x, y)` for each batch, until it is over. The value is the accuracy on all samples."""
    x, y = data(trial.device)
    record.device(model)
    for epoch in adl.remaining_epochs_until(2**40):
        for inputs, labels in loader:
            step(inputs.to(trial.device, non_blocking=True), labels.to(trial.device, non_blocking=True))
            record.step(parallel.steps)
        trial.report(epoch + 1, right_of(model, x, y))
        if record.is_over():
            break


def samples():
    return TensorDataset(*(part.cpu() for part in data("cpu")))


def scaled(record):
    model = net(trial.device)
    optimizer = torch.optim.AdamW(model.parameters(), trial.get("lr", 0.1))
    scaler = torch.amp.GradScaler(trial.device.type)
    parallel = adl.AdaptiveDataParallel(model, optimizer, None, scaler)
    loader = adl.AdaptiveDataLoader(samples(), batch_size=BATCH, shuffle=True, num_workers=2, persistent_workers=True,
                                    pin_memory=on_gpu)

    def step(inputs, labels):
        optimizer.zero_grad()
        with torch.autocast(trial.device.type, torch.float16 if on_gpu else torch.bfloat16):
            loss = F.cross_entropy(parallel(inputs), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()

    own_loop(record, loader, model, step, parallel)


def compiled(record):
    model = net(trial.device)
    optimizer = torch.optim.AdamW(model.parameters(), trial.get("lr", 0.1))
    parallel = adl.AdaptiveDataParallel(torch.compile(model), optimizer)
    loader = adl.AdaptiveDataLoader(samples(), batch_size=BATCH, shuffle=True)

    def step(inputs, labels):
        optimizer.zero_grad()
        F.cross_entropy(parallel(inputs), labels).backward()
        optimizer.step()

    own_loop(record, loader, model, step, parallel)


def fabric(record):
    from lightning.fabric import Fabric
    from espalier.integrations.lightning import ElasticStrategy
    over = Fabric(accelerator="auto" if on_gpu else "cpu", devices=1, strategy=ElasticStrategy(),
                  precision="16-mixed" if on_gpu else "bf16-mixed")
    plain = net("cpu")
    model, optimizer = over.setup(plain, torch.optim.AdamW(plain.parameters(), trial.get("lr", 0.1)))
    loader = over.setup_dataloaders(adl.AdaptiveDataLoader(samples(), batch_size=BATCH, shuffle=True))
    record.device(plain)
    x, y = data(trial.device)
    steps = 0
    for epoch in adl.epochs(2**40):
        for inputs, labels in loader:
            over.backward(F.cross_entropy(model(inputs), labels))
            optimizer.step()
            steps += 1
            record.step(steps)
        trial.report(epoch, right_of(model, x, y))
        if record.is_over():
            break


def lightning(record):
    from lightning.pytorch import LightningModule
    from lightning.pytorch.callbacks import Callback
    from espalier.integrations.lightning import ElasticTrainer

    class Classifier(LightningModule):
        def __init__(self):
            super().__init__()
            self.net = net("cpu")

        def training_step(self, batch, _):
            return F.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch, _):
            self.log("accuracy", (self.net(batch[0]).argmax(1) == batch[1]).float().mean(), batch_size=len(batch[1]))

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), trial.get("lr", 0.1))

    class Watch(Callback):
        def on_train_start(self, trainer, module):
            record.device(module)

        def on_train_batch_end(self, trainer, *_):
            record.step(trainer.global_step)

        def on_train_epoch_end(self, trainer, *_):
            trainer.should_stop = record.is_over()

    loaders = [torch.utils.data.DataLoader(samples(), batch_size=BATCH, shuffle=shuffle, pin_memory=on_gpu)
               for shuffle in (True, False)]
    ElasticTrainer(max_epochs=-1, trial_metric="accuracy", gradient_clip_val=5.0, callbacks=[Watch()],
                   precision="16-mixed" if on_gpu else "bf16-mixed").fit(Classifier(), *loaders)


def transformers(record):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "python_transformers"))
    from train import Sentences, accuracy, make_arguments, make_model
    from transformers import TrainerCallback
    from espalier.integrations.transformers import ElasticTrainer

    class Watch(TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, **_):
            record.device(model)

        def on_step_end(self, args, state, control, **_):
            record.step(state.global_step)

        def on_epoch_end(self, args, state, control, **_):
            control.should_training_stop = record.is_over()

    with tempfile.TemporaryDirectory() as folder:
        arguments = make_arguments(trial, folder, 10_000, bf16=True, use_cpu=not on_gpu, dataloader_num_workers=2)
        ElasticTrainer(make_model(trial), arguments, train_dataset=Sentences(SAMPLES, seed=1), eval_dataset=Sentences(500, seed=2),
                       compute_metrics=accuracy, trial_metric="accuracy", callbacks=[Watch()]).train()


if __name__ == "__main__":
    {f.__name__: f for f in (scaled, compiled, fabric, lightning, transformers)}[sys.argv[1]](Record(sys.argv[2]))
