"""A program whose replicas begin with other values, by its parameter "of", each seeded by its process: all that is drawn
("parameter"), a registered constant ("buffer"), what NumPy draws, which nobody seeds ("numpy"), or running statistics, which are each
replica's own ("statistics")."""
import os

import numpy
import torch
import torch.nn.functional as F
from torch.utils.data import TensorDataset

import espalier
import espalier.torch as adl


def main():
    trial = espalier.trial()
    torch.set_num_threads(1)
    of = trial.get("of")
    own = torch.Generator().manual_seed(os.getpid())
    if of == "parameter":
        torch.manual_seed(os.getpid())
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
    net.register_buffer("constant", torch.randn(4, generator=own) if of == "buffer" else torch.ones(4))
    if of == "numpy":
        with torch.no_grad():
            net[2].weight.copy_(torch.from_numpy(numpy.random.randn(1, 3)))
    if of == "statistics":
        net[1].running_mean.normal_(generator=own)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    model = adl.AdaptiveDataParallel(net, optimizer)
    x = torch.linspace(-1, 1, 32).reshape(16, 2)
    loader = adl.AdaptiveDataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
    for epoch in adl.epochs(2):
        for a, b in loader:
            F.mse_loss(model(a), b).backward()
            optimizer.step()
        trial.report(epoch, 0.0, replicas=model.replicas)


if __name__ == "__main__":
    main()
