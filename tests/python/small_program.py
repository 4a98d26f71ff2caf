"""What the tests of single loops train: some data, a small net, and the plain loop beside them."""
import contextlib
import os
import tempfile

import torch
from torch.utils.data import TensorDataset

mse = torch.nn.functional.mse_loss


def data(samples=200, features=6):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(samples, features, generator=generator)
    return x, x.pow(2).sum(1, keepdim=True) + 0.1 * torch.randn(samples, 1, generator=generator)


def net(seed=5, features=6):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(features, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


def values(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def plain_batches(x, y, batch):
    for begin in range(0, len(x), batch):
        yield x[begin:begin + batch], y[begin:begin + batch]


@contextlib.contextmanager
def standard_error():
    """A list that holds, afterwards, what was written to standard error within, by C++ as well."""
    written = []
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield written
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            written.append(file.read().decode())


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.01, momentum=0.9)


def make(model=None, optimizer=sgd, loader=None, **options):
    """A wrapped model, and all that trains it. `loader`: options of the loader's own."""
    import espalier.torch as adl
    model = net() if model is None else model
    own = optimizer(model.parameters())
    parallel = adl.AdaptiveDataParallel(model, own, **options)
    return model, own, parallel, adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=20, **(loader or {}))


def train(optimizer, parallel, loader, epochs=1):
    import espalier.torch as adl
    for _ in adl.remaining_epochs_until(epochs):
        for x, y in loader:
            mse(parallel(x), y).backward()
            optimizer.step()
