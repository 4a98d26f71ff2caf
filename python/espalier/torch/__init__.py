"""Elastic training of PyTorch loops, with AdaptDL's names and some of its own.

    model = AdaptiveDataParallel(model, optimizer)
    loader = AdaptiveDataLoader(dataset, batch_size=128, shuffle=True)
    for epoch in remaining_epochs_until(30):
        for x, y in loader:                      # replicas come and go here
            loss_fn(model(x), y).backward()
            optimizer.step()
"""
from espalier import _nni
from espalier.torch import scaling_rules
from espalier.torch.accumulator import Accumulator
from espalier.torch.data import AdaptiveDataLoader, ElasticSampler, current_dataloader
from espalier.torch.epoch import current_epoch, epochs, finished_epochs, remaining_epochs_until
from espalier.torch.evaluation import evaluate
from espalier.torch.group import init_process_group, local_first, rank, replicas
from espalier.torch.parallel import AdaptiveDataParallel, prepare

__all__ = [
    "Accumulator", "AdaptiveDataLoader", "AdaptiveDataParallel", "ElasticSampler", "current_dataloader",
    "current_epoch", "epochs", "evaluate", "finished_epochs", "init_process_group", "local_first", "prepare", "rank",
    "remaining_epochs_until", "replicas", "scaling_rules",
]

_nni.install()  # before the script asks NNI for its parameters
