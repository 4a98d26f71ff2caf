"""Rules for the factor by which the learning rate is multiplied when the batch is larger than the one it was chosen
for. The rules here run in C++; a class of your own that overrides `scale_lr` is called once per step."""
import ctypes
import typing

import numpy as np
import torch

from espalier._runtime import runtime
from espalier.torch.data import current_dataloader

__all__ = ["AdaScale", "AdamScale", "LEGWScale", "LinearScale", "ScalingRuleBase", "SqrtScale"]


class _Noise:
    """AdaptDL's view of the gradient noise, which rules of a program's own look at; arrays are by parameter
    group."""

    def __init__(self, model, groups):
        self._model, self._groups = model, groups
        self.during_step = None  # progress, while a rule of the program's is asked

    def _averages(self):
        sqr, var = (ctypes.c_double * self._groups)(), (ctypes.c_double * self._groups)()
        runtime().library.noise(self._model, sqr, var, self._groups)
        return np.array(sqr), np.array(var)

    @property
    def raw_sqr_avg(self):
        return self._averages()[0]

    @property
    def raw_var_avg(self):
        return self._averages()[1]

    def sqr_avg(self):
        return float(np.sum(np.maximum(self.raw_sqr_avg, 0.0)))

    def var_avg(self):
        return float(np.sum(np.maximum(self.raw_var_avg, 1e-6)))

    def get_progress(self):
        return runtime().position.progress if self.during_step is None else self.during_step

    def gain(self, scale):
        sqr, var = self.sqr_avg(), self.var_avg()
        return (var + sqr) / (var / scale + sqr)


class ScalingRuleBase:
    """A rule of your own: override `scale_lr`. `self.adp.gns` has `raw_sqr_avg` and `raw_var_avg`, arrays by
    parameter group, and `get_progress()`."""

    name = ""  # of the rule in C++; empty: scale_lr
    # These belong to the class, so that a rule has them even if its constructor does not call this one's.
    adp = None
    _optimizer = None
    _groups = 1
    _factors = None

    def scale_lr(self, scale: float) -> "float | np.ndarray":
        """Returns the factor for a batch of `scale` times the base batch size: one number, or one for each
        parameter group."""
        raise NotImplementedError

    def initialize(self, adp: typing.Any, optimizer: torch.optim.Optimizer, patch_optimizer: bool = False) -> None:
        """Called with the wrapped model and its optimizer, the first if there are several."""
        self.adp, self._optimizer = adp, optimizer

    def spec(self) -> str | None:
        """The rule's text as study files have it, or None for a rule that Python works out."""
        own = type(self).scale_lr not in _IN_CPP
        return None if own or not self.name else self.name

    def bind(self, adp: typing.Any, model: int, groups: int, optimizer: torch.optim.Optimizer) -> None:
        """Called when it is wrapped with a model."""
        self._groups = groups
        adp.gns = _Noise(model, groups)
        self.initialize(adp, optimizer)

    def factor(self, group: int, scale: float, progress: float, base_batch_size: int) -> float:
        if group == 0 or self._factors is None:
            self.adp.gns.during_step = progress
            try:
                self._factors = np.broadcast_to(np.asarray(self.scale_lr(scale), dtype=float), (self._groups,))
            finally:
                self.adp.gns.during_step = None
        return float(self._factors[group])


class AdaScale(ScalingRuleBase):
    """By the gradient noise (Johnson et al., 2020): the factor by which a step of the larger batch is worth more."""

    name = "adascale"

    def scale_lr(self, scale: float) -> "float | np.ndarray":
        var = np.maximum(self.adp.gns.raw_var_avg, 1e-6)
        sqr = np.maximum(self.adp.gns.raw_sqr_avg, 0.0)
        return (var + sqr) / (var / scale + sqr)


class AdamScale(AdaScale):
    """AdaScale's factor to a power, for optimizers that divide by a second moment; the usual one for Adam."""

    name = "adamscale"

    def scale_lr(self, scale: float, power: float = 0.5) -> "float | np.ndarray":
        return np.power(super().scale_lr(scale=scale), power)


class LinearScale(ScalingRuleBase):
    """The scale itself (Goyal et al., 2017)."""

    name = "linear"

    def scale_lr(self, scale: float) -> "float | np.ndarray":
        return scale


class SqrtScale(ScalingRuleBase):
    """The square root of the scale (Krizhevsky, 2014)."""

    name = "sqrt"

    def scale_lr(self, scale: float) -> "float | np.ndarray":
        return np.sqrt(scale)


class LEGWScale(ScalingRuleBase):
    """The square root of the scale, warmed up over `base_warmup_epochs` times the scale (You et al., 2019)."""

    name = "legw"

    def __init__(self, base_warmup_epochs: float, data_size: int | None = None) -> None:
        self._base_warmup_epochs = base_warmup_epochs
        self._data_size = data_size

    def spec(self) -> str | None:
        # In C++ an epoch has the samples of the training loader.
        own = type(self).scale_lr not in _IN_CPP or self._data_size is not None
        return None if own else f"legw:{self._base_warmup_epochs}"

    def scale_lr(self, scale: float) -> "float | np.ndarray":
        loader = current_dataloader()
        size = loader.samples if self._data_size is None else self._data_size
        steps = self._base_warmup_epochs * scale * size / loader.batch_size
        progress = self.adp.gns.get_progress()
        return float(np.sqrt(scale)) * (progress / steps if progress < steps else 1.0)


class _NoScale(ScalingRuleBase):
    """None at all."""

    name = "none"

    def scale_lr(self, scale: float) -> "float | np.ndarray":
        return 1.0


def by_name(text: str) -> ScalingRuleBase | None:
    """The rule of a study file's text; None where there is none of that name."""
    name, _, epochs = text.partition(":")
    if name == LEGWScale.name:
        try:
            return LEGWScale(float(epochs or _USUAL_WARMUP_EPOCHS))
        except ValueError:  # C++ tells what is wrong
            return None
    kinds = (AdaScale, AdamScale, LinearScale, SqrtScale, _NoScale)
    return next((kind() for kind in kinds if kind.name == text), None)


_USUAL_WARMUP_EPOCHS = 5  # as in C++
_IN_CPP = {kind.scale_lr for kind in (AdaScale, AdamScale, LinearScale, SqrtScale, LEGWScale, _NoScale)}
