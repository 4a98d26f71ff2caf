"""What tune_test.py tunes: functions that a trial's process imports by name."""
import sys

import espalier


def quadratic(trial):
    """Reports, and returns a value that is none of the reports."""
    x = trial.get("x", 0.0)
    for step in (1, 2):
        trial.report(step, 10 + step, twice=2 * x, forked="espalier._zygote" in sys.modules)
    return (x - 0.3) ** 2


def broken(trial):
    print(f"x is {trial.get('x', 0.0)}")
    raise ValueError("on purpose")


def asks_for_more(trial):
    return trial["lrr"]


def gone(trial):
    trial.report(1, 0.5)
    raise SystemExit("no data set")


def one_report_and_no_end(trial):
    from time import sleep as pause

    trial.report(1, 0.5)
    pause(3600)


def elastic(trial):
    """Trains a line on as many replicas as there are."""
    import torch
    from torch.utils.data import TensorDataset

    import espalier.torch as adl

    assert trial is espalier.trial()
    x = torch.randn(256, 4, generator=torch.Generator().manual_seed(1))
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), trial.get("lr", 0.1))
    model = adl.AdaptiveDataParallel(net, optimizer)
    loader = adl.AdaptiveDataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=32, shuffle=True)
    for epoch in adl.epochs(10):
        for inputs, targets in loader:
            torch.nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()
        trial.report(epoch, (net.weight - 1).abs().max().item(), replicas=model.replicas)


def until_two_replicas(trial):
    """An elastic training with suggested parameters, until it has grown."""
    from time import sleep as pause

    import torch
    from torch.utils.data import TensorDataset

    import espalier.torch as adl

    x = torch.randn(256, 4, generator=torch.Generator().manual_seed(1))
    net = torch.nn.Linear(4, 1)
    batch_size = trial.get("batch_size", 0)
    optimizer = torch.optim.SGD(net.parameters(), trial.get("lr", 0.0))
    model = adl.AdaptiveDataParallel(net, optimizer)
    loader = adl.AdaptiveDataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=batch_size, shuffle=True)
    for epoch in adl.epochs(100_000):
        for inputs, targets in loader:
            pause(0.01)  # so that an epoch is worth a second replica
            torch.nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()
        trial.report(epoch, (net.weight - 1).abs().max().item(), replicas=model.replicas, batch_size=batch_size,
                     lr=optimizer.param_groups[0]["lr"])
        if model.replicas == 2:
            break
