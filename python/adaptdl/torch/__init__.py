"""AdaptDL's library for PyTorch over Espalier's."""
import adaptdl.checkpoint
import adaptdl.collective
import adaptdl.env
from adaptdl.torch import scaling_rules
from adaptdl.torch.accumulator import Accumulator
from adaptdl.torch.data import AdaptiveDataLoader, ElasticSampler, current_dataloader
from adaptdl.torch.epoch import current_epoch, finished_epochs, remaining_epochs_until
from adaptdl.torch.group import init_process_group
from adaptdl.torch.parallel import AdaptiveDataParallel

__all__ = [
    "init_process_group",
    "current_epoch", "finished_epochs", "remaining_epochs_until",
    "current_dataloader", "AdaptiveDataLoader", "ElasticSampler",
    "AdaptiveDataParallel", "Accumulator",
]
