"""Evaluations that are cut over the replicas."""
import typing
from collections.abc import Callable, Sized

import torch

from espalier._library import Evaluation
from espalier._runtime import runtime
from espalier._sums import add_into
from espalier.errors import UsageError

_NAME = "espalier.evaluate"


def evaluate(fn: Callable[[torch.Tensor], dict], size: int | Sized, batch_size: int) -> dict:
    """Sums `fn(indices)` over `size` samples, divided among the replicas and there into batches of at most
    `batch_size`; `size` may be a data set. `fn` gets a tensor of indices and returns a dict of numbers; the result
    is the dict of their sums, the same on each replica. Models are in evaluation mode and no gradients are
    recorded meanwhile. If a replica is lost, the others repeat the call."""
    run = runtime()
    if not run.joined:
        raise UsageError("evaluate was called before the first epoch")
    size = size if isinstance(size, int) else len(size)
    if size < 1 or batch_size < 1:
        raise UsageError(f"evaluate: size is {size} and batch_size {batch_size}: want positive numbers")
    modes = {module: module.training for trained in run.models for module in trained.model.modules()}
    for trained in run.models:
        trained.model.eval()
    try:
        with torch.no_grad():
            return _sums_over(run, fn, size, batch_size)
    finally:
        _restore(modes)


def _restore(modes):
    """Parents come first, and each by its own train(), which may do more than set the mode; it sets that of all in it."""
    for module, training in modes.items():
        if module.training != training:
            module.train(training)
    for module, training in modes.items():  # one that stands in several others has the mode of the last
        module.training = training


def _sums_over(run, fn, size, batch_size):
    def own_part():
        begin, end = run.share(size)
        own = {}
        for at in range(begin, end, batch_size):
            if run.library.abandoned():
                break
            add_into(own, fn(torch.arange(at, min(at + batch_size, end))))
        return own
    return summed(run, _NAME, own_part, with_models=True)


def summed(run: typing.Any, name: str, own_part: Callable[[], dict], with_models: bool = False) -> dict:
    """The dict of sums over the results of `own_part` on each replica, under a name that no accumulator has. It is
    called again if a replica is lost; a replica that comes when it is done gets only the result. `with_models`: it is
    called on models that are the same on each."""
    evaluation = run.begin_evaluation()
    key = evaluation.key()
    while evaluation.state == Evaluation.TO_DO:
        if with_models and not run.share_buffers(evaluation):
            continue
        before = run.sums.snapshot()
        run.sums.add_beside_steps(name, own_part())
        run.sums.shared.pop(name, None)
        run.sums.asking = (key, name)
        try:
            if run.end_evaluation(evaluation):
                break
        finally:
            run.sums.asking = None
        run.sums.restore(before)
    return run.sums.result(key, name)
