"""What the tests of single loops train: some data, a small net, and the plain loop beside them."""
import torch


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
