"""What a trial's optimizers and schedules were built with. A checkpoint has it, so that a trial that begins with the checkpoint
of another trial, and has other parameters, goes on with its own options and not with those of the other.

A state_dict holds options beside what training has made of them: the rate as its schedule has it now. An option that the two
programs built alike is as the checkpoint has it. One that they built otherwise is this program's; the present rate of a group
is what it was in the checkpoint, in proportion to the rates that the two began with, so that schedules keep their factor."""
import copy
import math

import torch

_RATE = "lr"
_BASE_RATE = "initial_lr"  # what a schedule multiplies; it may begin with a rate of 0
_LAST_RATES = "_last_lr"   # of a schedule: the groups' rates


def options(optimizer):
    """Of its groups, in their order."""
    return [{key: copy.deepcopy(value) for key, value in group.items() if key != "params"} for group in optimizer.param_groups]


def schedule(of):
    return copy.deepcopy(of.state_dict())


def _alike(a, b):
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.shape == b.shape and bool((a == b).all())
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_alike(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_alike, a, b))
    return a == b


def _ratio(then, now):
    """Of the rates that a group began with; None: they are alike, or there is none."""
    name = _BASE_RATE if _BASE_RATE in then and _BASE_RATE in now else _RATE
    if name not in then or name not in now or _alike(then[name], now[name]):
        return None
    before = float(then[name])
    return float(now[name]) / before if before != 0 and math.isfinite(before) else math.nan


def merge_groups(then, now, optimizer):
    """Its groups have the options of the checkpoint; `then` and `now` are those of the two programs at first. Returns the
    factors of the groups' rates."""
    factors = []
    for built, own, group in zip(then, now, optimizer.param_groups):
        factor = _ratio(built, own)
        for key, value in own.items():
            if key == _RATE or key not in group or (key in built and _alike(built[key], value)):
                continue
            group[key] = copy.deepcopy(value)
        if factor is not None:
            # From a rate of 0 no other one follows but by its schedule.
            group[_RATE] = group[_RATE] * factor if not math.isnan(factor) else copy.deepcopy(own[_RATE])
        factors.append(1.0 if factor is None or math.isnan(factor) else factor)
    return factors


def merged_schedule(then, now, loaded, factors):
    """The state_dict of a schedule."""
    merged = dict(loaded)
    for key, value in now.items():
        if key not in loaded or (key in then and _alike(then[key], value)):
            continue
        if key == _LAST_RATES and len(factors) == len(loaded[key]):
            merged[key] = [rate * factor for rate, factor in zip(loaded[key], factors)]
        elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value) and (
                len(value) == len(loaded[key]) == len(then.get(key, ()))):  # of schedules one after another
            merged[key] = [merged_schedule(*each, factors) for each in zip(then[key], value, loaded[key])]
        else:
            merged[key] = copy.deepcopy(value)
    return merged
