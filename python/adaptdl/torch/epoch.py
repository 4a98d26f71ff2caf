"""The loop over epochs: see espalier.torch.epoch."""
from espalier._the_trial import the_trial
from espalier.torch import epoch as _epoch
from espalier.torch.epoch import current_epoch, remaining_epochs_until

from adaptdl import _job

__all__ = ["current_epoch", "finished_epochs", "remaining_epochs_until"]


def finished_epochs():
    """How many epochs are done. Before its first epoch a replica that an agent has started does not know: 0."""
    if _job.given():
        the_trial()
    return _epoch.finished_epochs()
