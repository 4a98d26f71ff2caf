"""States of a program that belong to its training: saved in checkpoints, and handed to replicas that join."""
import functools
import io
import pickle
import re
import typing

from espalier.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_states = {}  # by name
_on_new = []  # called when there is a new one


class State:
    """A state of the program's own, in addition to models, optimizers and what was wrapped with them. Override `save`,
    `load` and, if it must first be made equal on all replicas, `sync`.

    A replica that joins receives it as it is where the group changes, which is between two batches of the training
    loader or two epochs, and then does the rest of the epoch. So change it within the loop, or after the last batch
    in a way that gives the same result when it is repeated: `self.epoch = 3`, not `self.epoch += 1`.
    """

    def __init_subclass__(cls, **keys: typing.Any) -> None:
        super().__init_subclass__(**keys)
        own = cls.__dict__.get("__init__")
        if own is None:
            return

        @functools.wraps(own)
        def init(self, *args, **keys):
            own(self, *args, **keys)
            if type(self).__init__ is init and not hasattr(self, "_espalier_name"):
                raise UsageError(f"{type(self).__name__} is a State without a name, which would never be saved: want "
                                 "super().__init__(name) in its __init__")
        cls.__init__ = init

    def __init__(self, name: str) -> None:
        """`name`: letters, digits, '_', '-' and '.'; unique in the process."""
        if name in _states:
            raise ValueError(f"State '{name}' already exists")
        if not _NAME.fullmatch(name):
            raise UsageError(f"state {name!r}: must be a name of letters, digits, '_', '-' and '.'")
        _states[name] = self
        self._espalier_name = name
        for call in _on_new:
            call(name)

    def save(self, fileobj: typing.BinaryIO) -> None:
        """Writes the state to a binary file."""

    def load(self, fileobj: typing.BinaryIO) -> None:
        """Replaces the state by what `save` wrote, perhaps on another replica."""

    def sync(self) -> None:
        """Called on every replica at the end of an epoch and when the group changes, before the state is saved or
        handed over. Do not wait for other replicas here: they may have been lost."""


def states() -> dict[str, State]:
    return dict(_states)


def saved(name: str) -> bytes:
    """What the state of that name writes."""
    out = io.BytesIO()
    try:
        _states[name].save(out)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        if not isinstance(error, pickle.PicklingError) and "pickle" not in str(error):
            raise
        raise UsageError(f'State "{name}": its save() cannot pickle what it writes, for checkpoints and replicas that '
                         f"join ({type(error).__name__}: {error}): want plain values, tensors and objects of classes "
                         "that can be imported") from error
    return out.getvalue()


def on_new_state(call: typing.Callable[[str], None]) -> None:
    """Has `call` called with the name of each state, also of those that there are already."""
    _on_new.append(call)
    for name in _states:
        call(name)
