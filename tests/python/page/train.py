"""The loop that docs/python.md begins with, and that a plain loop and one for DDP become."""
from task import Net, training, validation

import torch, torch.nn.functional as F
import espalier, espalier.torch as adl

trial = espalier.trial()                                     # parameters, reports; alone or under a tuner
model = Net(trial.get("width", 16)).to(trial.device)
optimizer = torch.optim.SGD(model.parameters(), lr=trial.get("lr", 0.02), momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
model = adl.AdaptiveDataParallel(model, optimizer, schedule)
loader = adl.AdaptiveDataLoader(training, batch_size=trial.get("batch_size", 128), shuffle=True, num_workers=2)
held_out = adl.AdaptiveDataLoader(validation, batch_size=500)
seen = adl.Accumulator()

for epoch in adl.epochs(30):                                 # joins the group; goes on where that is
    model.train()
    for x, y in loader:                                      # replicas come and go here
        F.cross_entropy(model(x.to(trial.device)), y.to(trial.device)).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, y in held_out:                                # cut over the replicas
            seen["correct"] += (model(x.to(trial.device)).argmax(1).cpu() == y).sum().item()
    with seen.synchronized():                                # the sums over all of them
        accuracy = seen["correct"] / len(validation)
        seen.clear()
    trial.report(epoch, accuracy)
    schedule.step()
