"""What the loops of docs/python.md and docs/python_training.md learn, in seconds."""
import torch
from torch.utils.data import TensorDataset


def data(samples, seed):
    x = torch.randn(samples, 8, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(x, (x.sum(1) > 0).long())


class Net(torch.nn.Sequential):
    def __init__(self, width):
        super().__init__(torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))


torch.manual_seed(1)
training, validation = data(1024, 1), data(512, 2)
