"""What docs/python_install.md begins with."""
import torch
from task import Net, training as dataset

net = Net(16)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

import espalier, espalier.torch as adl
trial = espalier.trial()                                          # the parameters of the study, and the reports
model = adl.AdaptiveDataParallel(net, optimizer)                  # trains on as many slots as the trial has
loader = adl.AdaptiveDataLoader(dataset, batch_size=trial.get("batch_size", 64), shuffle=True)
for epoch in adl.epochs(10):
    seen = adl.Accumulator()                                      # sums over all replicas: each reports the same
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        seen["loss"] += loss.item() * len(x)
    with seen.synchronized():
        trial.report(epoch, seen["loss"] / len(dataset))
