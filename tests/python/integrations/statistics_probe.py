"""A net with running statistics, which differ between replicas as long as they train. Each replica writes down what its
validations came to, and those of Lightning and transformers what has come of the weights.

usage: statistics_probe.py FOLDER"""
import pathlib
import sys

import torch
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

import espalier
import espalier.torch as adl

EPOCHS = 6


def net():
    torch.manual_seed(5)
    return torch.nn.Sequential(torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 1))


def data(samples=96):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(samples, 6, generator=generator) * torch.arange(1.0, 7.0)
    return TensorDataset(x, x.sum(1, keepdim=True).sin())


def say(folder, way, *figures):
    with open(folder / f"{way}-{adl.rank()}", "a", encoding="utf-8") as file:
        print(*figures, file=file)


def plain(way, folder):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    parallel = adl.AdaptiveDataParallel(model, optimizer)
    loader, held_out = (adl.AdaptiveDataLoader(data(), batch_size=16, shuffle=s) for s in (True, False))
    for epoch in adl.epochs(EPOCHS):
        for x, y in loader:
            mse_loss(parallel(x), y).backward()
            optimizer.step()
        before = model[0].running_mean.clone()
        parallel.eval()
        if way == "loop":
            for x, _ in held_out:
                parallel(x)
        else:
            adl.evaluate(lambda indices: {"count": len(indices)}, 96, 16)
        parallel.train()
        say(folder, way, epoch, model[0].running_mean.sum().item(), model[2].running_var.sum().item())
        say(folder, "before", way, epoch, before.sum().item())
    espalier.trial().report(EPOCHS, 0.0)


def lightning(folder):
    from lightning.pytorch import LightningModule
    from espalier.integrations.lightning import ElasticTrainer

    class Module(LightningModule):
        def __init__(self):
            super().__init__()
            self.net = net()

        def training_step(self, batch, batch_idx):
            return mse_loss(self.net(batch[0]), batch[1])

        def validation_step(self, batch, batch_idx):
            self.log("val_loss", mse_loss(self.net(batch[0]), batch[1]))

        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), 0.05)
            schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.9, patience=0)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "monitor": "val_loss"}}

        def on_train_epoch_end(self):
            say(folder, "lightning", self.current_epoch, self.trainer.callback_metrics["val_loss"].item(),
                self.optimizers().param_groups[0]["lr"], sum(p.sum().item() for p in self.parameters()))

    trainer = ElasticTrainer(max_epochs=EPOCHS, enable_progress_bar=False, enable_model_summary=False, val_check_interval=3)
    trainer.fit(Module(), DataLoader(data(), batch_size=16, shuffle=True), DataLoader(data(), batch_size=32))


def transformers(folder):
    from transformers import TrainerCallback, TrainingArguments
    from espalier.integrations.transformers import ElasticTrainer

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, x, labels):
            said = self.net(x)
            return {"loss": mse_loss(said, labels), "logits": said}

    class Said(TrainerCallback):
        def on_evaluate(self, args, state, control, metrics=None, model=None, **more):
            say(folder, "transformers", state.global_step, metrics["eval_loss"], sum(p.sum().item() for p in model.parameters()))

    arguments = TrainingArguments(str(folder / "out"), num_train_epochs=EPOCHS, per_device_train_batch_size=16,
                                  eval_strategy="epoch", save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
                                  learning_rate=0.05)
    samples = [{"x": x, "labels": y} for x, y in data()]
    ElasticTrainer(Model(), arguments, train_dataset=samples, eval_dataset=samples, callbacks=[Said()]).train()


def main():
    folder = pathlib.Path(sys.argv[1])
    way = espalier.trial().get("way", "loop")
    if way in ("lightning", "transformers"):
        globals()[way](folder)
    else:
        plain(way, folder)


if __name__ == "__main__":
    main()
