"""States of a program that belong to its training: saved in checkpoints, and handed to replicas that join."""
import re

from espalier.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_states = {}  # by name
_on_new = []  # who wants to hear of a new one


class State:
    """Something of the program's own, beside models, optimizers and what was wrapped with them. Override `save`,
    `load` and, where it has to be made equal on all replicas first, `sync`.

    A replica that joins takes it as it is where the group changes, which is between two batches of the training
    loader or two epochs, and then does what is left of the epoch. So change it within the loop, or after the
    last batch in a way that comes out the same when it is done again: `self.epoch = 3`, not `self.epoch += 1`.
    """

    def __init__(self, name):
        """`name`: letters, digits, '_', '-' and '.'; one of its own for each state of the process."""
        if name in _states:
            raise ValueError(f"State '{name}' already exists")
        if not _NAME.fullmatch(name):
            raise UsageError(f"state {name!r}: want a name of letters, digits, '_', '-' and '.'")
        _states[name] = self
        self._espalier_name = name
        for call in _on_new:
            call(name)

    def save(self, fileobj):
        """Writes the state to a binary file."""

    def load(self, fileobj):
        """Takes what `save` wrote, maybe on another replica, in place of what was there."""

    def sync(self):
        """Called on every replica at an epoch's end and when the group changes, before the state is saved or
        handed over. No place to wait for other replicas: they may have been lost."""


def states():
    return dict(_states)


def on_new_state(call):
    """Has `call` called with the name of each state, also of those that there are already."""
    _on_new.append(call)
    for name in _states:
        call(name)
