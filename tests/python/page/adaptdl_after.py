"""adaptdl_before.py with espalier's imports, for a study."""
from task import Net, training, validation

import torch, torch.nn.functional as F
import espalier, espalier.torch as adl

trial = espalier.trial()
device = trial.device
model = Net(16).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=trial.get("lr", 0.02), momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
model = adl.AdaptiveDataParallel(model, optimizer, schedule)
loader = adl.AdaptiveDataLoader(training, batch_size=128, shuffle=True, num_workers=2, drop_last=True)
loader.autoscale_batch_size(512, local_bsz_bounds=(32, 128))
held_out = adl.AdaptiveDataLoader(validation, batch_size=500)

for epoch in adl.remaining_epochs_until(30):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x.to(device)), y.to(device)).backward()
        optimizer.step()
    model.eval()
    stats = adl.Accumulator()
    with torch.no_grad():
        for x, y in held_out:
            stats["correct"] += (model(x.to(device)).argmax(1).cpu() == y).sum().item()
            stats["total"] += len(y)
    with stats.synchronized():
        accuracy = stats["correct"] / stats["total"]
    trial.report(epoch + 1, accuracy)
    schedule.step()
