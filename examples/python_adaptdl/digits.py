"""Generated images with one bright row, whose position is the label."""
import torch
from torch.utils.data import TensorDataset


def digits_data(size, seed):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (size,), generator=generator)
    images = torch.randn(size, 1, 10, 10, generator=generator) * 0.5
    images[torch.arange(size), 0, labels] += 1.5
    return TensorDataset(images, labels)
