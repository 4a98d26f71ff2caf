"""The first pass of a replica that joins a group, before others wait for it."""
import collections
import contextlib
import copy
import inspect
import os
from collections.abc import Mapping

import torch

from espalier._errors import UsageError, first_line
from espalier.torch._datasets import kept_generators

_SWITCH = "ESPALIER_REHEARSAL"
_CONTAINERS = (dict, collections.OrderedDict, list, set, collections.deque)


def rehearse_joiner(run):
    """Where the program has rehearsed nothing itself: forward and backward of its models on a batch of its training loader,
    of which nothing is left. Whatever keeps it from that is no error: the service is told."""
    switch = os.environ.get(_SWITCH, "on")
    if switch not in ("on", "off"):
        raise UsageError(f'environment variable {_SWITCH}="{switch}": want on or off')
    if run.facts.joins > 0 and run.models and not run.rehearsed:
        why_not = f"{_SWITCH}=off" if switch == "off" else _rehearse(run)
        if why_not:
            run.library.not_rehearsed(why_not.encode())


def _rehearse(run):
    """Returns why it could not; empty: it could."""
    loader = run.training_loader
    if loader is None:
        return "the program has no training loader whose batch its model could be given"
    try:
        with kept_generators():
            batch = _to(loader.rehearsed_batch(run.library.rehearsed_samples()), run.device)
            run.rehearse(lambda: [_pass(model, batch, run.device.type) for model in run.models])
    except _Unfit as error:
        return f"{error}. Want model.rehearse(function) in the program"
    except Exception as error:
        return f"a batch of the training loader: {type(error).__name__}: {first_line(error)}. Want model.rehearse(function) in the program"
    return ""


class _Unfit(Exception):
    """What a model cannot do with a batch, in words."""


def _pass(model, batch, device_type):
    """Forward and backward of one model."""
    of = f'of the model "{model.name}"' if model.name else "of its model"
    mixed = torch.autocast(device_type) if model.scales_loss else contextlib.nullcontext()
    try:
        with _as_it_was(model.model), mixed:
            model.model.train()
            arguments, named = _arguments(model.model, batch)
            loss = _sum_of(model.model(*arguments, **named))
            if loss is not None:
                loss.backward()
    except Exception as error:
        raise _Unfit(f"the forward pass {of} on a batch of the training loader: {type(error).__name__}: {first_line(error)}") from error
    if loss is None:
        raise _Unfit(f"the forward pass {of} on a batch of the training loader gives nothing that has a gradient")


def _arguments(module, batch):
    """What forward() takes of a batch: by name where the batch has names, else as many of its parts as it asks for, first
    ones first."""
    parameters = inspect.signature(module.forward).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if isinstance(batch, Mapping):
        names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
        named = {key: value for key, value in batch.items() if isinstance(key, str) and (anything or key in names)}
        return ((), named) if named.keys() >= {p.name for p in needed} and named else ((batch,), {})
    if isinstance(batch, (tuple, list)) and batch:
        return tuple(batch[:max(1, len(needed))]), {}
    return (batch,), {}


def _to(value, device):
    """A batch, there. A GPU that is given a number which a model does not know (the index of an embedding, a class) ends the
    process: to be safe it gets zeros."""
    if isinstance(value, torch.Tensor):
        moved = value.to(device)
        return torch.zeros_like(moved) if device.type == "cuda" and not moved.is_floating_point() else moved
    if isinstance(value, Mapping):
        return {key: _to(each, device) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_to(each, device) for each in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_to(each, device) for each in value)
    return value


def _sum_of(output):
    """Of all numbers through which backward goes to parameters, or of what the model itself calls its loss; None: none."""
    if isinstance(output, torch.Tensor):
        if not output.requires_grad:
            return None
        return (output.abs() if output.is_complex() else output).float().sum()
    if isinstance(output, Mapping):
        loss = output.get("loss")
        each = [loss] if isinstance(loss, torch.Tensor) and loss.requires_grad else output.values()
    elif isinstance(output, (tuple, list)):
        each = output
    else:
        return None
    sums = [found for part in each if (found := _sum_of(part)) is not None]
    return sum(sums) if sums else None


@contextlib.contextmanager
def _as_it_was(module):
    """Afterwards the attributes of modules are those of before, with what they held: counters, lists, tensors that a forward
    pass assigns. (The library puts the content of buffers back.)"""
    former = [(vars(each), dict(vars(each))) for each in module.modules()]
    held = {id(value): (value, copy.copy(value)) for _, attributes in former for value in attributes.values()
            if type(value) in _CONTAINERS}
    try:
        yield
    finally:
        for now, attributes in former:
            now.clear()
            now.update(attributes)
        for value, content in held.values():
            value.clear()
            (value.extend if isinstance(value, (list, collections.deque)) else value.update)(content)
