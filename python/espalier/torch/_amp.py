"""Loss scaling: in a step's batches before the last there is nothing to unscale, a step that is dropped or left out is
no news for the scale, and the noise of gradients is measured before they are unscaled."""
import functools
import weakref

import torch

from espalier import _library

_models = weakref.WeakKeyDictionary()  # by optimizer: what it trains
_last = weakref.WeakKeyDictionary()    # by scaler: what it stepped last
_plain = {}                            # torch's own methods, once they are replaced


def watch(optimizer, trained):
    """Every GradScaler minds the steps of this optimizer, whether it was named as the model's or not."""
    _models[optimizer] = trained
    if _plain:
        return
    kind = torch.amp.GradScaler
    for own in (step, update, unscale_):
        plain = _plain[own.__name__] = getattr(kind, own.__name__)
        setattr(kind, own.__name__, functools.wraps(plain)(own))


def step(scaler, optimizer, *args, **kwargs):
    trained = _models.get(optimizer)
    if trained is not None:
        _last[scaler] = trained
        # Where a replica was lost there are no gradients.
        if trained.accumulates() or trained.has_no_gradients():
            return optimizer.step()
    if trained is None:
        return _plain["step"](scaler, optimizer, *args, **kwargs)
    before = trained.step_calls
    trained.loss_scale = scaler.get_scale()
    try:
        result = _plain["step"](scaler, optimizer, *args, **kwargs)
    finally:
        trained.loss_scale = 1.0
    if trained.step_calls == before:  # something in its gradients is not finite
        trained.pass_over()
    return result


def update(scaler, new_scale=None):
    outcome = _last[scaler].outcome if scaler in _last else None
    if outcome == _library.ACCUMULATED:
        return
    if outcome in (_library.DROPPED, _library.LEFT_OUT) and scaler.is_enabled():
        new_scale = scaler._scale  # as it was; what was found about the step's gradients is forgotten
    _plain["update"](scaler, new_scale)


def unscale_(scaler, optimizer):
    trained = _models.get(optimizer)
    if trained is None or not trained.accumulates():
        _plain["unscale_"](scaler, optimizer)
