"""The loop of AdaptDL's tutorial: training and validation with sums, Adadelta and a step schedule, a batch that may grow.
It uses Espalier for reports to a study, and for the slot's device. usage: tutorial.py [EPOCHS]"""
import sys

import torch
import torch.nn.functional as F

import adaptdl.torch as adl
import espalier
from digits import digits_data

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 3

device = espalier.trial().device
adl.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
train_loader = adl.AdaptiveDataLoader(digits_data(2000, 1), drop_last=True, batch_size=64, shuffle=True)
valid_loader = adl.AdaptiveDataLoader(digits_data(500, 2), batch_size=100)
train_loader.autoscale_batch_size(1028, local_bsz_bounds=(32, 128))
model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Flatten(),
                            torch.nn.Linear(512, 10)).to(device)
optimizer = torch.optim.Adadelta(model.parameters(), lr=espalier.trial().get("lr", 1.0))
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
model = adl.AdaptiveDataParallel(model, optimizer, scheduler)
for epoch in adl.remaining_epochs_until(EPOCHS):
    model.train()
    for image, label in train_loader:
        image, label = image.to(device), label.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(image), label)
        loss.backward()
        optimizer.step()
    model.eval()
    stats = adl.Accumulator()
    with torch.no_grad():
        for image, label in valid_loader:
            image, label = image.to(device), label.to(device)
            output = model(image)
            stats["loss"] += F.cross_entropy(output, label, reduction="sum").item()
            stats["correct"] += output.argmax(dim=1).eq(label).sum().item()
            stats["total"] += label.size(0)
    with stats.synchronized():
        stats["accuracy"] = stats["correct"] / stats["total"]
        print(f"epoch {adl.current_epoch()} loss {stats['loss'] / stats['total']:.4f} "
              f"accuracy {stats['accuracy']:.3f} of {stats['total']}", flush=True)
        espalier.trial().report(epoch + 1, stats["accuracy"])
    scheduler.step()
