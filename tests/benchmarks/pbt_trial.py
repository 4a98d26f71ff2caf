"""A member of a population, for pbt.py: the small net of the peers. Appends a line at the beginning and the end of each
epoch to the file that it is given: the moment, the trial, "begin" or "end". All trials but the first end after so many
epochs as a fourth argument says."""
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
import models  # noqa: E402

import espalier  # noqa: E402
import espalier.torch as adl  # noqa: E402

LOG, EPOCHS, STEPS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
MOST = int(sys.argv[4]) if len(sys.argv) > 4 else None

trial = espalier.trial()
torch.manual_seed(0)
net, inputs, labels, batch = models.make("small")
optimizer = models.make_optimizer(net)
for group in optimizer.param_groups:
    group["lr"] = trial.get("lr", 0.01)
rows = STEPS * batch
data = torch.utils.data.TensorDataset(inputs[torch.arange(rows) % len(inputs)], labels[torch.arange(rows) % len(labels)])
loader = adl.AdaptiveDataLoader(data, batch_size=batch, shuffle=True)
model = adl.AdaptiveDataParallel(net, optimizer)


def note(what):
    with open(LOG, "a") as out:
        out.write(f"{time.time()} {trial.number} {what}\n")


done = 0
for epoch in adl.remaining_epochs_until(EPOCHS):
    if done == MOST and trial.number > 0:
        break
    done += 1
    losses = []
    for i, (x, y) in enumerate(loader):
        if i == 0:
            note("begin")
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    note("end")
    trial.report(epoch + 1, sum(losses) / len(losses))
