"""What the state of a model and its optimizers is at the moment: what a replica that joins is given of a model, and what replicas
compare."""
import io
import pickle

import torch

from espalier import _pickles
from espalier.errors import TrialError


class ModuleState:
    """Of one model. A program may assign buffers anew in each forward pass, or register some there."""

    def __init__(self, module, name):
        self._module = module
        self._name = f"model.{name}" if name else "model"

    def parameters(self):
        return dict(self._module.named_parameters())

    def buffers(self):
        return dict(self._module.named_buffers())

    def set_buffers(self, buffers):
        """Each under its name, in place of those that the model has."""
        names = {id(buffer): name for name, buffer in self.buffers().items()}
        for module in self._module.modules():
            for leaf, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[leaf] = buffers.get(names[id(buffer)])
        for name, buffer in buffers.items():
            path, _, leaf = name.rpartition(".")
            try:
                module = self._module.get_submodule(path)
            except AttributeError as error:
                raise TrialError(f'the group that this replica joins has a buffer "{name}", and the model of this replica no '
                                 f"module {path}: do all replicas run the same program with the same parameters?") from error
            vars(module).pop(leaf, None)
            module._buffers[leaf] = buffer

    def other(self):
        """What state_dict() has beside parameters and buffers, and which buffers it has not, as bytes; none: nothing."""
        buffers = dict(self._module.named_buffers(remove_duplicate=False))
        known = {name for name, _ in self._module.named_parameters(remove_duplicate=False)} | buffers.keys()
        whole = self._module.state_dict()
        more = {name: value for name, value in whole.items() if name not in known}
        fleeting = [name for name in buffers if name not in whole]
        if not more and not fleeting:
            return b""
        out = io.BytesIO()
        _pickles.dump((more, fleeting), pickle.Pickler(out), {f"the state_dict() of {self._name}": more},
                      "leave it out of the state_dict()")
        return out.getvalue()

    def set_other(self, pickled):
        more, fleeting = pickle.loads(pickled)
        for name in fleeting:
            path, _, leaf = name.rpartition(".")
            self._module.get_submodule(path)._non_persistent_buffers_set.add(leaf)
        if more:
            self._module.load_state_dict({**self._module.state_dict(), **more}, strict=False)

    def buffer_names(self):
        """Of those in its state_dict()."""
        whole = self._module.state_dict()
        return [name for name, _ in self._module.named_buffers(remove_duplicate=False) if name in whole]

    def make_buffers(self, names, saved):
        """Before a state_dict is loaded: buffers of these names that the model, which has not run yet, has not, or has in
        another shape."""
        for name in names:
            path, _, leaf = name.rpartition(".")
            try:
                module = self._module.get_submodule(path)
            except AttributeError:
                continue  # load_state_dict says what is wrong
            now = module._buffers.get(leaf)
            if now is None and hasattr(module, leaf) and leaf not in module._buffers:
                continue
            if now is None or now.shape != saved[name].shape:
                like = now if now is not None else next(self._module.parameters(), saved[name])
                module._buffers[leaf] = torch.empty_like(saved[name], device=like.device)


def load_exactly(optimizer, state):
    """A state_dict. load_state_dict() itself gives tensors the type of their parameter, also those that an optimizer keeps
    in another, as NAdam's product of rates is."""
    optimizer.load_state_dict(state)
    numbers = [number for group in state["param_groups"] for number in group["params"]]
    own = [p for group in optimizer.param_groups for p in group["params"]]
    for number, p in zip(numbers, own):
        for key, value in state["state"].get(number, {}).items():
            loaded = optimizer.state[p][key]
            if isinstance(value, torch.Tensor) and isinstance(loaded, torch.Tensor) and loaded.dtype != value.dtype:
                optimizer.state[p][key] = value.detach().clone().to(loaded.device)


def compared(optimizers, others, names):
    """Of optimizers and what has a state_dict() beside them (schedules, scalers): names of the tensors, the tensors, and the
    numbers, in an order that is the same where they are equal. `names`: of parameters, by id."""
    found, tensors, numbers = [], [], []

    def walk(value, name):
        if isinstance(value, torch.Tensor):
            if value.layout == torch.strided and value.device.type != "meta":
                found.append(name)
                tensors.append(value.detach())
        elif isinstance(value, (bool, int, float, str)):
            numbers.append(value)
        elif isinstance(value, dict):
            for key in sorted(value, key=str):
                walk(value[key], f"{key} of {name}")
        elif isinstance(value, (list, tuple)):
            for each in value:
                walk(each, name)

    for optimizer in optimizers:
        for group in optimizer.param_groups:
            walk({key: value for key, value in group.items() if key != "params"}, "a parameter group")
            for p in group["params"]:
                walk(optimizer.state.get(p, {}), f'"{names.get(id(p), "a parameter")}"')
    for other in others:
        walk(other.state_dict(), f"the {type(other).__name__}")
    return found, tensors, numbers
