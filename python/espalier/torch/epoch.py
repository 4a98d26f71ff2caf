"""The loop over epochs. Code before it, and around the loops over data of the epoch in which they come, is run again
by replicas that join: it must come out the same each time. A schedule that was wrapped with its model sees to that."""
import numbers
from collections.abc import Iterator

from espalier._runtime import is_open, runtime
from espalier._the_trial import the_trial
from espalier.errors import UsageError


def remaining_epochs_until(epoch: int) -> Iterator[int]:
    """The epochs that are not done yet, from 0, up to and without `epoch`. The first one waits until this replica
    is part of a group; each one's end saves a checkpoint. An epoch that is left by `break` counts as finished."""
    the_trial()
    if not (isinstance(epoch, numbers.Integral) or isinstance(epoch, float) and epoch.is_integer()):
        raise UsageError(f"the number of epochs is {epoch!r}: want a whole number")
    epoch = int(epoch)  # of a parameter it may be 3.0
    run = runtime()
    if run.in_epoch is not None:
        raise RuntimeError("overlapping epoch loops detected")
    while run.next_epoch(epoch):
        run.in_epoch = run.position.epoch
        try:
            yield run.in_epoch
        finally:
            run.left_epoch, run.in_epoch = run.in_epoch, None


def epochs(until: int) -> Iterator[int]:
    """The same, counted from 1 to `until`, as Trial.report counts them."""
    for epoch in remaining_epochs_until(until):
        yield epoch + 1


def current_epoch() -> int | None:
    """The number of the current epoch, from 0; None outside of a loop over epochs."""
    return runtime().in_epoch if is_open() else None


def finished_epochs() -> int:
    """The number of finished epochs; before the first epoch of this process 0, whatever other replicas have done."""
    if not is_open():
        return 0
    run = runtime()
    epoch = run.position.epoch
    if run.in_epoch is None and run.left_epoch == epoch:
        return epoch + 1  # left by `break` or an exception
    return max(epoch, 0)
