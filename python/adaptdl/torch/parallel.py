"""The model: see espalier.torch.parallel."""
from espalier._runtime import runtime
from espalier._the_trial import the_trial
from espalier.torch import parallel as _parallel

from adaptdl import _job

__all__ = ["AdaptiveDataParallel"]


class AdaptiveDataParallel(_parallel.AdaptiveDataParallel):
    __doc__ = _parallel.AdaptiveDataParallel.__doc__

    def __init__(self, *args, **kwargs):
        the_trial()
        if _job.given():
            runtime().expect_lone_training()
        super().__init__(*args, **kwargs)
