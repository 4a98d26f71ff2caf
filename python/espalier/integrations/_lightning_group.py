"""Where a replica is among those of its trial, as Lightning's strategies tell it."""
import espalier.torch as adl


class InGroup:
    """A base before SingleDeviceStrategy. Rank and size may change from step to step."""

    @property
    def global_rank(self):
        return adl.rank()

    @global_rank.setter
    def global_rank(self, rank):
        """Lightning says 0, and the group decides."""

    @property
    def world_size(self):
        return adl.replicas()

    @world_size.setter
    def world_size(self, size):
        """Likewise."""

    @property
    def is_global_zero(self):
        return adl.rank() == 0
