"""The module that lightning_trainer_test.py and its probe train."""
import pathlib
import sys
import time

import torch
from lightning.pytorch import LightningModule
from torch.utils.data import DataLoader, TensorDataset

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from small_program import data, net  # noqa: E402


def pause(pause_s):
    """So that an epoch is long enough for others to come and go in it."""
    time.sleep(pause_s)


class Regression(LightningModule):
    def __init__(self, lr=0.01, schedule="epoch", pause_s=0.0, adam=True):
        super().__init__()
        self.net = net()
        self.lr, self.schedule, self.pause_s, self.adam = lr, schedule, pause_s, adam
        self.rates = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        pause(self.pause_s)
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.log("train_loss", loss, on_step=True, on_epoch=True, batch_size=len(x))
        self.log("samples", float(len(x)), on_step=False, on_epoch=True, reduce_fx="sum")
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", torch.nn.functional.mse_loss(self.net(x), y), batch_size=len(x))

    def on_train_epoch_end(self):
        self.rates.append(self.optimizers().param_groups[0]["lr"])

    def configure_optimizers(self):
        if self.adam:
            optimizer = torch.optim.Adam(self.parameters(), self.lr)
        else:
            optimizer = torch.optim.SGD(self.parameters(), self.lr, momentum=0.9)
        if self.schedule.startswith("plateau"):
            scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0, threshold=0.3)
            interval = "step" if self.schedule.endswith("step") else "epoch"
            return {"optimizer": optimizer,
                    "lr_scheduler": {"scheduler": scheduler, "monitor": "val_loss", "interval": interval}}
        if self.schedule in ("several", "third"):
            every = {"scheduler": torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99), "interval": "step", "frequency": 3}
            epochs = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.8 ** epoch)
            return [optimizer], [every, epochs] if self.schedule == "several" else [every]
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9 if self.schedule == "epoch" else 0.99)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": self.schedule}}


def loaders(batch_size=32, samples=200, **options):
    x, y = data(samples)
    held_out = TensorDataset(*(part[:100] for part in data(samples)))
    return DataLoader(TensorDataset(x, y), batch_size=batch_size, **options), DataLoader(held_out, batch_size=50)
