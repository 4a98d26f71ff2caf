"""The nets of workloads.h for the peers, with the same data shapes, batches and optimizer."""
import os

import torch
import torch.nn.functional as F

SAMPLES = 2048


class ConvNet(torch.nn.Module):
    """That of examples/fashion_mnist."""

    def __init__(self, width=16, dropout=0.1):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = torch.nn.Conv2d(width, 2 * width, 3)
        self.linear1 = torch.nn.Linear(2 * width * 36, 8 * width)
        self.linear2 = torch.nn.Linear(8 * width, 10)
        self.dropout = dropout

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = F.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = F.dropout(torch.relu(self.linear1(x.flatten(1))), self.dropout, self.training)
        return self.linear2(x)


def perceptron(*widths):
    layers = []
    for wide, narrow in zip(widths, widths[1:]):
        layers += [torch.nn.ReLU(), torch.nn.Linear(wide, narrow)]
    return torch.nn.Sequential(*layers[1:])


# name: net, shape of a sample, global batch size
WORKLOADS = {
    "convnet": (ConvNet, (1, 28, 28), 128),
    "mlp": (lambda: perceptron(784, 1280, 1200, 10), (784,), 128),
    "large": (lambda: perceptron(1024, 4096, 4096, 1024, 10), (1024,), 32),
    "small": (lambda: perceptron(64, 256, 256, 10), (64,), 256),
}


def make(name):
    """net, inputs, labels, global batch size"""
    net, shape, batch = WORKLOADS[name]
    return net(), torch.randn(SAMPLES, *shape), torch.randint(10, (SAMPLES,)), batch


def save(folder, net, optimizer):
    """What training has made of them."""
    torch.save((net.state_dict(), optimizer.state_dict()), os.path.join(folder, "state.pt"))


def load(folder, net, optimizer):
    for part, state in zip((net, optimizer), torch.load(os.path.join(folder, "state.pt"))):
        part.load_state_dict(state)


def make_optimizer(net):
    return torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
