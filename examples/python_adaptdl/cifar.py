"""The loop of AdaptDL's CIFAR example, with a small net: the rank decides who would download, a parameter group for each
parameter, loss scaling, scalars for TensorBoard. usage: cifar.py [EPOCHS]"""
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F

import adaptdl
import adaptdl.torch as adl
import espalier  # for reports, which AdaptDL has not, and the slot's device
from digits import digits_data

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 3


class Scalars:
    """What of a SummaryWriter is used."""

    def __init__(self):
        self.tags = set()

    def add_scalar(self, tag, value, step):
        self.tags.add(tag)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.BatchNorm2d(8)

    def forward(self, x):
        return x + F.relu(self.norm(self.conv(x)))


device = espalier.trial().device
adl.init_process_group("gloo")
if adaptdl.env.replica_rank() == 0:
    dataset = digits_data(1000, 1)
    dist.barrier()
else:
    dist.barrier()
    dataset = digits_data(1000, 1)
loader = adl.AdaptiveDataLoader(dataset, batch_size=100, shuffle=True, num_workers=2, drop_last=True)
loader.autoscale_batch_size(400, local_bsz_bounds=(8, 100), gradient_accumulation=True)
valid_loader = adl.AdaptiveDataLoader(digits_data(300, 2), batch_size=100, shuffle=False, num_workers=2)

net = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), Block(), Block(), torch.nn.Flatten(), torch.nn.Linear(512, 10))
net = net.to(device)
scaler = torch.amp.GradScaler(device.type, init_scale=128.0)
optimizer = torch.optim.SGD([{"params": [p]} for p in net.parameters()], lr=0.02, momentum=0.9, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2], 0.1)
net = adl.AdaptiveDataParallel(net, optimizer, schedule, scaler)
writer = Scalars()


def run(loader, name, train):
    net.train(train)
    stats = adl.Accumulator()
    with torch.set_grad_enabled(train):
        for inputs, targets in loader:
            inputs, targets = inputs.to(device), targets.to(device)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                outputs = net(inputs)
                loss = F.cross_entropy(outputs, targets)
            if train:
                optimizer.zero_grad()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                step = net.steps
                loader.to_tensorboard(writer, step, tag_prefix="AdaptDL/Data/")
                net.to_tensorboard(writer, step, tag_prefix="AdaptDL/Model/")
            stats["loss_sum"] += loss.item() * targets.size(0)
            stats["total"] += targets.size(0)
            stats["correct"] += outputs.max(1)[1].eq(targets).sum().item()
    with stats.synchronized():
        stats["accuracy"] = stats["correct"] / stats["total"]
        print(name, adl.current_epoch(), dict(stats), flush=True)
        return stats["accuracy"]


for epoch in adl.remaining_epochs_until(EPOCHS):
    run(loader, "train", True)
    accuracy = run(valid_loader, "valid", False)
    espalier.trial().report(epoch + 1, accuracy)
    schedule.step()
print("scalars", *sorted(writer.tags), flush=True)
