"""What becomes of gradients between a backward pass and the step: zero_grad(), hooks, those that no optimizer has, and those
that come between the steps of a model's optimizers."""
import functools
import warnings

import torch
from torch.nn.utils import clip_grad

from espalier import _library
from espalier._runtime import runtime
from espalier.errors import UsageError


class Zeroing:
    """What zero_grad() of these parameters does in training, whichever models of the trial train them."""

    def __init__(self, parameters):
        ids = {id(p) for p in parameters}
        self._places = []
        for model in runtime().models:
            for index, numbers in enumerate(model.numbers_in_optimizers(ids)):
                if numbers:
                    self._places.append((model, index, (_library._i64 * len(numbers))(*numbers)))

    def __call__(self):
        for model, index, numbers in self._places:
            model.zero(index, numbers)


class StepGuard:
    """Refuses a backward pass while some optimizers of a model are stepped and others are not: it would find parameters as
    they were, and add to what is to be stepped with."""

    def __init__(self):
        self._hooks = []

    def set(self, parameters, stepped):
        """`stepped`: how many of the optimizers are."""
        def refuse(_parameter):
            raise UsageError(f"backward() after the step() of optimizer {stepped - 1} of the model and before that of "
                             f"optimizer {stepped}: all optimizers of a model take their step with the last one's step(). "
                             "Want every backward() before the first step(), or what each optimizer trains in an "
                             "AdaptiveDataParallel of its own")
        self.lift()
        self._hooks += [p.register_post_accumulate_grad_hook(refuse) for p in parameters if p.requires_grad]

    def lift(self):
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()


def _drop(parameter):
    parameter.grad = None


def drop_untrained(model, trained):
    """Gradients of parameters that no optimizer has are each replica's own: kept, they would add up over the batches and
    have each replica clip by a norm of its own. `trained`: the ids of all parameters that some optimizer has."""
    names = []
    for name, p in model.named_parameters():
        if p.requires_grad and id(p) not in trained and not p._post_accumulate_grad_hooks:
            p.grad = None
            p.register_post_accumulate_grad_hook(_drop)
            names.append(f'"{name}"')
    if names:
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        warnings.warn(f"AdaptiveDataParallel: parameters that require gradients are in no optimizer: {shown}. Their .grad "
                      "stays None, and clip_grad_norm_ does not count them. Want requires_grad_(False) on them before "
                      "training, which also saves their part of backward, or an optimizer that has them", stacklevel=2)


class DeferredHooks:
    """Hooks that a program sets on gradients of a model's parameters, as to clip or to mask them. Called within backward,
    such a hook would see the gradient of one replica's part of a batch, or of one of several pieces: it is called with the
    step's, when that has been summed."""

    def __init__(self, model):
        self._model = model
        self.any = False  # there are some, or were

    def defer(self):
        for p in self._model.trained:
            for key, hook in (p._backward_hooks or {}).items():
                self.any = True
                if not isinstance(hook, _DeferredHook):
                    p._backward_hooks[key] = _DeferredHook(hook, self._model)

    @torch.no_grad()
    def call(self):
        for p in self._model.trained:
            gradient = p.grad
            for deferred in list((p._backward_hooks or {}).values()) if gradient is not None else ():
                made = deferred.hook(gradient)
                gradient = gradient if made is None else made
            if gradient is not p.grad:
                p.grad.copy_(gradient)


class _DeferredHook:
    def __init__(self, hook, model):
        self.hook = hook
        self._model = model

    def __call__(self, gradient):
        return None if self._model.defers_hooks else self.hook(gradient)


def let_clip_nothing():
    """clip_grad_value_() raises where no parameter has a gradient, as in batches before a step's last, or where a replica was
    lost; clip_grad_norm_() does not."""
    plain = clip_grad._group_tensors_by_device_and_dtype
    if hasattr(plain, "espalier"):
        return

    @functools.wraps(plain)
    def grouped(lists, *args, **kwargs):
        return plain(lists, *args, **kwargs) if lists[0] else {}
    grouped.espalier = True
    clip_grad._group_tensors_by_device_and_dtype = grouped


_passes = 0      # backward passes that are under way, one within the other
_nested = False  # there were some within the outermost


def watch_backward(run):
    """A layer may run a backward pass within the one that is under way, as torch.utils.checkpoint does where it is reentrant.
    Gradients that come in it belong to the outermost, whose end C++ is told of, since it need bring none itself."""
    plain = torch.autograd.backward
    if hasattr(plain, "espalier"):
        return

    @functools.wraps(plain)
    def backward(*args, **kwargs):
        global _passes, _nested
        _nested = _passes > 0
        _passes += 1
        try:
            result = plain(*args, **kwargs)
        finally:
            _passes -= 1
        if _nested and _passes == 0:
            _nested = False
            run.library.end_backwards()
        return result
    backward.espalier = True
    torch.autograd.backward = backward
