"""A loop of Lightning Fabric's, for fabric_test.py: alone or under a tuner."""
import argparse
import pathlib
import sys
import time

import torch
from lightning.fabric import Fabric
from torch.utils.data import TensorDataset

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import espalier  # noqa: E402
import espalier.torch as adl  # noqa: E402
from espalier.integrations.lightning import ElasticStrategy  # noqa: E402
from small_program import data, net  # noqa: E402


class Unhurried(TensorDataset):
    """A batch of 32 takes some 10 ms, so that 30 of them are an epoch that is worth a second replica."""

    def __getitem__(self, index):
        time.sleep(0.0003)
        return super().__getitem__(index)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stop", type=pathlib.Path, help="a file: training ends when it is there")
    parser.add_argument("--set", action="append")
    arguments = parser.parse_args()
    trial = espalier.trial()
    x, y = data(30 * 32)
    training = Unhurried(x, y)
    fabric = Fabric(accelerator="cpu", devices=1, strategy=ElasticStrategy())
    plain = net()
    optimizer = torch.optim.SGD(plain.parameters(), lr=trial.get("lr", 0.01), momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    model, optimizer, scheduler = fabric.setup(plain, optimizer, scheduler=scheduler)
    loader = fabric.setup_dataloaders(adl.AdaptiveDataLoader(training, batch_size=32, shuffle=True))

    for epoch in adl.epochs(100_000):
        for inputs, targets in loader:
            fabric.backward(torch.nn.functional.mse_loss(model(inputs), targets))
            fabric.clip_gradients(model, optimizer, max_norm=5.0)
            optimizer.step()
        with torch.no_grad():
            own = slice(fabric.global_rank, None, fabric.world_size)
            error = fabric.all_reduce((model(x[own]) - y[own]).pow(2).sum(), reduce_op="sum").item() / len(x)
        ranks = fabric.all_gather(torch.tensor(fabric.global_rank))
        said = fabric.broadcast(f"by {fabric.global_rank}")
        fabric.barrier()
        trial.report(epoch, error, rate=scheduler.get_last_lr()[0], ranks=float(ranks.sum()), by=float(said[3:]))
        if fabric.all_reduce(torch.tensor(float(arguments.stop.exists())), reduce_op="sum") > 0:
            break
        scheduler.step()  # after the last place where the group may change: who joins there has it still to do


if __name__ == "__main__":
    main()
