"""Checkpoints as torch.save lays them out, so that torch.load(path) reads them:

    {"model": ..., "optimizer": ..., "states": {name: bytes}, "espalier": {...}}

Of a model that has a name the first two are "model.NAME" and "optimizer.NAME". Schedules and scalers are among the
states, pickled: "scheduler", "scheduler-1", "scaler".

The pickle is made here; the memory of its tensors is copied and written by C++, in the background."""
import io
import pickle

import torch

from espalier import _pickles, checkpoint
from espalier.errors import TrialError

_PROTOCOL = 2  # what torch.load(weights_only=True) reads


class _Pickler(pickle.Pickler):
    """Notes the memory of tensors instead of writing it, under the names that torch.load looks for."""

    def __init__(self, out):
        super().__init__(out, protocol=_PROTOCOL)
        self.storages = []
        self._keys = {}

    def persistent_id(self, obj):
        if isinstance(obj, torch.storage.TypedStorage):
            storage, kind = obj._untyped_storage, getattr(torch, obj._pickle_storage_type())
            count = obj._size()
        elif torch.is_storage(obj):
            storage, kind, count = obj, torch.UntypedStorage, obj.nbytes()
        else:
            return None
        key = self._keys.get(storage._cdata)
        if key is None:
            key = self._keys[storage._cdata] = str(len(self.storages))
            self.storages.append(storage)
        return "storage", kind, key, "cpu", count


def _suffix(name):
    return f".{name}" if name else ""


def content(models, parameters, position, accumulators):
    """What a checkpoint holds."""
    all_of_it = {}
    for model in models:
        all_of_it.update(model.checkpoint_content())
    all_of_it["states"] = {name: checkpoint.saved(name) for name in checkpoint.states()}
    all_of_it["espalier"] = {"position": position, "accumulators": accumulators,
                             "buffers": {key: names for model in models for key, names in model.buffers_in_checkpoint().items()},
                             "built": _built(models, parameters)}
    return all_of_it


def _built(models, parameters):
    """By which parameters, and with what in optimizers and schedules."""
    return pickle.dumps((dict(parameters), {model.name: model.built_with for model in models}), _PROTOCOL)


def _take_own_options(read, models, own):
    """Where the checkpoint is of a trial with other parameters."""
    if "built" not in read["espalier"]:  # a version that did not note it
        return
    parameters, built = pickle.loads(read["espalier"]["built"])
    if parameters == own:
        return
    for model in models:
        model.take_own_options(built[model.name])


def dump(models, parameters, position, accumulators):
    """The pickle, and the memory that it names, as tensors of bytes."""
    out = io.BytesIO()
    pickler = _Pickler(out)
    held = content(models, parameters, position, accumulators)
    _pickles.dump(held, pickler, {f"the state_dict() of {key}": value for key, value in held.items()},
                  "leave it out of the state_dict(), or keep it in an espalier.State")
    return out.getvalue(), [torch.empty(0, dtype=torch.uint8, device=s.device).set_(s) for s in pickler.storages]


def _read(path, **how):
    try:
        return torch.load(path, map_location="cpu", weights_only=True, **how)
    except pickle.UnpicklingError:
        # An optimizer or schedule keeps objects of its own classes. The file is the trial's own.
        return torch.load(path, map_location="cpu", weights_only=False, **how)


def load(path, models, parameters):
    """Loads all of it in place. Returns position and accumulators."""
    read = _read(path)
    if not isinstance(read, dict) or "espalier" not in read:
        raise TrialError(f"checkpoint {path} has no training position")
    known = {"states", "espalier"}
    for model in models:
        known |= model.load_checkpoint_content(read)
    unknown = sorted(set(read) - known)
    if unknown:
        raise TrialError(f"checkpoint {path} has {', '.join(unknown)}, which this program has not")
    states = checkpoint.states()
    for name, state in states.items():
        if name not in read["states"]:
            raise TrialError(f'checkpoint {path} has no state "{name}", which this program has')
        state.load(io.BytesIO(read["states"][name]))
    _take_own_options(read, models, parameters)
    return read["espalier"]["position"], read["espalier"]["accumulators"]


def position_in(path):
    return _read(path, mmap=True)["espalier"]["position"]
