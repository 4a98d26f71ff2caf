"""The trial of python_start.py: says when it was at its first line and at its steps, and ends."""
import time

first_line = time.time()

import json  # noqa: E402
import os  # noqa: E402
import pathlib  # noqa: E402
import sys  # noqa: E402

import torch  # noqa: E402

import espalier  # noqa: E402
import espalier.torch as adl  # noqa: E402

STEPS = 3


def own_mb():
    fields = dict(line.split()[:2] for line in pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    return int(fields["Private_Dirty:"]) / 1024


def main():
    trial = espalier.trial()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(trial.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model = adl.AdaptiveDataParallel(model, optimizer)
    data = torch.utils.data.TensorDataset(torch.randn(32 * STEPS, 16), torch.randn(32 * STEPS, 1))
    loader = adl.AdaptiveDataLoader(data, batch_size=32, shuffle=True)
    steps = []
    for _ in adl.epochs(1):
        for x, y in loader:
            (model(x.to(trial.device)) - y.to(trial.device)).pow(2).mean().backward()
            optimizer.step()
            steps.append(time.time())
    line = {"order": os.stat(os.environ["ESPALIER_PARAMETERS"]).st_mtime, "first_line": first_line, "steps": steps,
            "forked": "espalier._zygote" in sys.modules, "own_mb": own_mb(), "device": str(trial.device)}
    with open(sys.argv[1], "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    trial.report(1, 0.0)


main()
