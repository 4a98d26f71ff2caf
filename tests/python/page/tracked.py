"""What docs/python_training.md shows of a tracker."""
import torch, torch.nn.functional as F
import espalier, espalier.torch as adl
import wandb
from task import Net, training, validation

trial = espalier.trial()
net = Net(16)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
model = adl.AdaptiveDataParallel(net, optimizer)
loader = adl.AdaptiveDataLoader(training, batch_size=64, shuffle=True)


def track(values):
    """By each replica: rank 0 has the run open."""
    if model.rank != 0:
        wandb.finish()                                       # where it was rank 0 before
        return
    if wandb.run is None:
        name = f"{trial.study}-{trial.number}" if trial.elastic else None
        wandb.init(project="digits", id=name, resume="allow", config=dict(trial.parameters))
    wandb.log(values)


def right(indices):
    x, y = validation[indices]
    return {"correct": (model(x).argmax(1) == y).sum().item()}


trial.on_leave(wandb.finish)
for epoch in adl.epochs(3):
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    accuracy = adl.evaluate(right, validation, batch_size=500)["correct"] / len(validation)
    track({"epoch": epoch, "accuracy": accuracy})
    trial.report(epoch, accuracy)
