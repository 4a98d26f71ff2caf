"""Loaders: see espalier.torch.data."""
from espalier.torch import data as _data
from espalier.torch.data import current_dataloader

from adaptdl import env
from adaptdl._refused import refused

__all__ = ["AdaptiveDataLoader", "ElasticSampler", "current_dataloader"]


class AdaptiveDataLoader(_data.AdaptiveDataLoader):
    __doc__ = _data.AdaptiveDataLoader.__doc__

    @property
    def _elastic(self):
        """What current_dataloader() gives in this loader's loop: the loader itself."""
        return self


class ElasticSampler(_data.ElasticSampler):
    __doc__ = _data.ElasticSampler.__doc__

    def __init__(self, dataset, shuffle=True):
        super().__init__(dataset, shuffle)
        self.num_replicas, self.rank = env.num_replicas(), env.replica_rank()


AdaptiveDataLoaderHelper = refused("AdaptiveDataLoaderHelper", "loaders of a program's own are not elastic: read a "
                                   "data set by AdaptiveDataLoader, with a collate_fn or workers of your own")
AdaptiveDataLoaderMixin = refused("AdaptiveDataLoaderMixin", "loaders of a program's own are not elastic: read a "
                                  "data set by AdaptiveDataLoader, with a collate_fn or workers of your own")
