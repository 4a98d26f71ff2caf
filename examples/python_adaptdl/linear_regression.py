"""Fits a line, as in AdaptDL's example: a parameter group for each parameter, a schedule that is stepped after each
epoch. It uses nothing of Espalier. usage: linear_regression.py [EPOCHS]"""
import sys

import torch
import torch.nn.functional as F
from torch.utils.data import Dataset

import adaptdl.torch as adl

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 20


class Line(Dataset):
    def __init__(self, size):
        generator = torch.Generator().manual_seed(1)
        self.x = torch.rand(size, generator=generator) * 10 - 5
        self.y = 3 + 4 * self.x + torch.randn(size, generator=generator)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


device = "cuda" if torch.cuda.is_available() else "cpu"
adl.init_process_group("gloo")
loader = adl.AdaptiveDataLoader(Line(1000), batch_size=32, shuffle=False, num_workers=1)
model = torch.nn.Linear(1, 1, bias=True).to(device)
sgd = torch.optim.SGD([{"params": [p]} for p in (model.bias, model.weight)], lr=0.01)
schedule = torch.optim.lr_scheduler.MultiStepLR(sgd, [10])
parallel = adl.AdaptiveDataParallel(model, sgd, schedule)
for epoch in adl.remaining_epochs_until(EPOCHS):
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)
        sgd.zero_grad()
        F.mse_loss(parallel(inputs.reshape(-1, 1)), targets.reshape(-1, 1)).backward()
        sgd.step()
    schedule.step()
print("bias", model.bias.item(), "weight", model.weight.item())
