"""A study of python_start.py by espalier.tune, of a function that needs PyTorch and trains nothing."""
import time

import espalier
from espalier import space

SLOTS = 2


def objective(trial):
    import torch
    return torch.tensor(trial["x"]).square().item()


def study_s(trials, preload, directory):
    """From the call to its result."""
    begin = time.monotonic()
    result = espalier.tune(objective, {"x": space.uniform(0, 1)}, trials=trials, sampler="random", slots=SLOTS,
                           preload=preload, directory=directory, show=False)
    assert (result.state, len(result.trials)) == ("COMPLETE", trials), result
    return time.monotonic() - begin
