"""Sums over what all replicas see."""
import contextlib
import copy
import typing
from collections.abc import Iterator, MutableMapping

import torch

from espalier._library import Evaluation
from espalier._runtime import runtime
from espalier._the_trial import the_trial
from espalier.errors import UsageError

_FIXED = (int, float, complex, str, bytes)
_made = {}  # how many accumulators each epoch has made


class Accumulator(MutableMapping):
    """A dictionary of sums: losses, hits, counts, anything that adds up. `accum["loss"] += value` adds to this
    replica's own part, and reads find an empty dictionary. Within `with accum.synchronized():` it holds the sums
    over all replicas, those that have left included, and can be used like a dict; do the same with it on each.

    What belongs to a step that is dropped because a replica was lost is not counted, since it is done again.
    What a lost replica had added since the last merge (a `synchronized`, a validation loop's end, an epoch's end,
    a change of the group) is lost with it, except in validation loops, which are repeated.
    """

    def __init__(self, *args: typing.Any, **kwargs: typing.Any) -> None:
        the_trial()
        run = runtime()
        if run.current_loader is not None:
            raise UsageError("an Accumulator was made within a loop over data: make it before")
        epoch = run.in_epoch
        number = _made.get(epoch, 0)
        _made[epoch] = number + 1
        self._name = f"{'-' if epoch is None else epoch}-{number}"
        self._number = number + 1
        self._sums = run.sums
        self._synchronized = None
        initial = dict(*args, **kwargs)
        if initial and self._name not in self._sums.shared:
            self._sums.shared[self._name] = initial

    @contextlib.contextmanager
    def synchronized(self) -> Iterator["Accumulator"]:
        """All replicas come here at the same place of the program."""
        if self._synchronized is not None:
            yield self
            return
        run = runtime()
        if not run.in_group:
            raise UsageError("Accumulator.synchronized() was called before the first epoch")
        evaluation = run.begin_evaluation(self._number)
        merged = False
        while evaluation.state == Evaluation.TO_DO and not merged:
            self._sums.asking = (evaluation.key(), self._name)
            try:
                merged = bool(run.end_evaluation(evaluation))
            finally:
                self._sums.asking = None
        if merged:
            self._synchronized = self._sums.shared.setdefault(self._name, {})
        else:
            self._sums.forget(self._name)
            self._synchronized = self._sums.result(evaluation.key(), self._name)
        try:
            yield self
        finally:
            self._synchronized = None

    def update(self, *args: typing.Any, **kwargs: typing.Any) -> None:
        """Adds each value to the sum of its key."""
        for key, value in dict(*args, **kwargs).items():
            self[key] += value

    def subtract(self, *args: typing.Any, **kwargs: typing.Any) -> None:
        """As `update`, with what is given taken away instead of added."""
        for key, value in dict(*args, **kwargs).items():
            self[key] -= value

    def __iadd__(self, other):
        self.update(other)
        return self

    def __isub__(self, other):
        self.subtract(other)
        return self

    def _held(self):
        return {} if self._synchronized is None else self._synchronized

    def __getitem__(self, key: typing.Any) -> typing.Any:
        if self._synchronized is not None:
            return self._synchronized[key]
        return _Update(self, key)

    def __setitem__(self, key: typing.Any, value: typing.Any) -> None:
        if self._synchronized is not None:
            self._synchronized[key] = value
            return
        if not isinstance(value, _Update) or value.of is not self or value.key != key:
            raise TypeError(f"outside of synchronized() an Accumulator can only be added to: use accum[{key!r}] += "
                            "value")
        for part in value.parts:
            self._sums.add(self._name, key, _own(part))

    def __delitem__(self, key: typing.Any) -> None:
        del self._held()[key]

    def __contains__(self, key):
        return key in self._held()

    def __iter__(self) -> Iterator[typing.Any]:
        return iter(self._held())

    def __len__(self) -> int:
        return len(self._held())

    def __repr__(self):
        return repr(self._held())

    def __copy__(self):
        return copy.copy(self._held())


def _own(value):
    """What the program may go on to change, as it is now."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return value if isinstance(value, _FIXED) else copy.deepcopy(value)


class _Update:
    """What `accum[key]` is outside of synchronized(): takes what is added to it."""
    __slots__ = ("of", "key", "parts")

    def __init__(self, of, key):
        self.of, self.key, self.parts = of, key, []

    def __add__(self, value):
        if isinstance(value, _Update):
            value._refuse()
        self.parts.append(value)
        return self

    def __sub__(self, value):
        if isinstance(value, _Update):
            value._refuse()
        self.parts.append(-value)
        return self

    def _refuse(self, *_):
        raise TypeError(f"an Accumulator's sum cannot be read outside of synchronized(): want accum[{self.key!r}] within it")

    __bool__ = __int__ = __float__ = __index__ = __neg__ = __abs__ = __str__ = __format__ = __hash__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __pow__ = __radd__ = __rsub__ = _refuse
