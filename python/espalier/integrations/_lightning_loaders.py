"""Lightning's loaders as a trial's, how many of their batches make a step, and how many of these an epoch."""
import math
import numbers

import torch
from lightning.pytorch.callbacks import GradientAccumulationScheduler
from lightning.pytorch.trainer.connectors.data_connector import _parse_num_batches
from lightning.pytorch.trainer.states import RunningStage
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler

import espalier.torch as adl
from espalier.errors import UsageError


def elastic_loader(loader, accumulation):
    """The training loader in the place of a plain one with the same samples and options."""
    if isinstance(loader, adl.AdaptiveDataLoader):
        refuse_of_adaptive_loader(accumulation)
        return loader
    if type(loader) is not DataLoader:
        raise UsageError(f"ElasticTrainer: the training loader is a {type(loader).__name__}: want one DataLoader")
    sampler, streams = loader.sampler, isinstance(loader.dataset, torch.utils.data.IterableDataset)
    shuffled = type(sampler) is RandomSampler and not sampler.replacement and sampler.num_samples == len(loader.dataset)
    for wrong, right in ((loader.batch_size is None, "a batch_size, and no batch_sampler"),
                         (not streams and not shuffled and type(sampler) is not SequentialSampler,
                          f"no sampler of its own, and it has a {type(sampler).__name__}: the group deals each sample once an "
                          "epoch: weigh samples in the loss, choose them by torch.utils.data.Subset, and shuffle by "
                          "shuffle=True")):
        if wrong:
            raise UsageError(f"ElasticTrainer: the training loader: want {right}")
    workers = {"prefetch_factor": loader.prefetch_factor, "persistent_workers": loader.persistent_workers,
               "multiprocessing_context": loader.multiprocessing_context} if loader.num_workers else {}
    return adl.AdaptiveDataLoader(
        loader.dataset, batch_size=loader.batch_size * accumulation, shuffle=shuffled, training=True,
        local_bsz_bounds=(None, loader.batch_size), collate_fn=loader.collate_fn, num_workers=loader.num_workers,
        pin_memory=loader.pin_memory, timeout=loader.timeout, worker_init_fn=loader.worker_init_fn, **workers)


def refuse_validation_loaders(trainer):
    loaders = trainer.val_dataloaders
    for loader in loaders if isinstance(loaders, (list, tuple)) else [loaders]:
        if isinstance(loader, adl.AdaptiveDataLoader):
            raise UsageError("ElasticTrainer: a validation loader is an AdaptiveDataLoader: want a plain DataLoader: each "
                             "replica validates on the whole of it")


class Accumulation:
    """How many of the training loader's batches make a step: what Trainer calls accumulate_grad_batches. The group weighs
    microbatches by their samples, so that this says of how many samples a step is. Once training has begun it is the group's."""

    def __init__(self, trainer):
        self._trainer = trainer
        self._asked = 1
        self._loader = None   # the trial's, once there is one
        self._batch = None    # of the program's own; None: it has given an AdaptiveDataLoader
        self._drops_last = False

    def made(self, loader, given):
        """The trial's loader, in the place of the given one."""
        self._loader = loader
        self._batch = None if given is loader else given.batch_size
        self._drops_last = getattr(given, "drop_last", False)
        plans = [c.scheduling.values() for c in self._trainer.callbacks if isinstance(c, GradientAccumulationScheduler)]
        for count in {self._asked}.union(*plans):
            self._refuse(count)
        return self.length()

    @property
    def count(self):
        """That of the next step to come, as far as the program has said."""
        return self._asked if self._batch is None else self._loader.next_batch_size // self._batch

    def set(self, count):
        """From the next epoch on, or from the present one on where its first batch is yet to come."""
        if not isinstance(count, numbers.Integral) or isinstance(count, bool) or count < 1:
            raise UsageError(f"ElasticTrainer: accumulate_grad_batches is {count!r}: want a positive whole number")
        # StochasticWeightAveraging says of its pass over the data, in which no step is taken, that none is due.
        if count == self.count or self._trainer.fit_loop._skip_backward:
            return
        if self._loader is not None:
            self._refuse(count)
            if self._loader.under_training:
                raise UsageError(f"ElasticTrainer: accumulate_grad_batches was set to {count} within an epoch, where it is "
                                 f"{self.count}: set it where an epoch begins or ends, as in on_train_epoch_start")
            self._loader.set_batch_size(self._batch * count)
        self._asked = int(count)

    def _refuse(self, count):
        """What cannot be done, before it is tried."""
        self.refuse_manual(count, self._trainer.lightning_module)
        if self._batch is None:
            refuse_of_adaptive_loader(count)
            return
        self._trainer.strategy.refuse_frequencies(count)
        length = self.length(count)
        if count > 1 and self._batch * count > self._loader.samples and length.steps:
            raise UsageError(f"ElasticTrainer: accumulate_grad_batches is {count}, and {count} batches of {self._batch} samples "
                             f"are more than an epoch's {self._loader.samples}: want less")

    @staticmethod
    def refuse_manual(count, module):
        if count != 1 and not module.automatic_optimization:
            raise UsageError(f"ElasticTrainer: accumulate_grad_batches is {count}, and the module has "
                             "automatic_optimization=False: want 1, and a larger batch_size")

    def length(self, count=None):
        """Of the present epoch, or of one with that number of batches a step."""
        if self._batch is None:
            return EpochLength(self._trainer, self._loader, self._loader.batch_size, 1, False)
        present, rest = divmod(self._loader.batch_size, self._batch)
        if rest:
            raise UsageError(f"ElasticTrainer: the trial goes on with steps of {self._loader.batch_size} samples, which are no "
                             f"whole batches of the training loader's {self._batch}: want a batch_size as it was before")
        return EpochLength(self._trainer, self._loader, self._batch, count or present, self._drops_last)


def refuse_of_adaptive_loader(accumulation):
    if accumulation != 1:
        raise UsageError(f"ElasticTrainer: accumulate_grad_batches is {accumulation}, and the training loader is an "
                         "AdaptiveDataLoader, which accumulates by local_bsz_bounds: want 1")


class EpochLength:
    """Of how many steps an epoch is, and after how many of them it is validated. All replicas take part in a step, so that
    they come to both at the same place of the program."""

    def __init__(self, trainer, loader, batch, accumulation, drop_last):
        """batch: samples of one of the program's batches, of which `accumulation` make a step."""
        self.accumulation = accumulation
        self._step_samples = batch * accumulation
        # The batch of a loader that grows it is not known ahead, and neither are steps.
        self.known = not loader.grows
        self._limit, self._interval = trainer.limit_train_batches, trainer.val_check_interval
        self._over_epochs = trainer.check_val_every_n_epoch is None
        self.at_end = self._interval == 1.0 and isinstance(self._interval, float)  # of each epoch, as by default
        if not self.known:
            for name, given, usual in (("limit_train_batches", self._limit, 1.0), ("val_check_interval", self._interval, 1.0)):
                if given != usual or not isinstance(given, float):
                    raise UsageError(f"ElasticTrainer: {name} is {given!r}, and the training loader was told to grow its batch "
                                     "by autoscale_batch_size: want 1.0, or a loader without it")
            self.steps, self.limited, self.samples = len(loader), False, loader.samples
            return
        samples = loader.samples
        whole = samples // batch if drop_last else math.ceil(samples / batch)
        batches = _parse_num_batches(RunningStage.TRAINING, whole, self._limit)
        self.limited = batches * batch < samples
        if self.limited and batches % accumulation != 0:
            what = f"limit_train_batches={self._limit!r}" if batches < whole else "drop_last=True"
            raise UsageError(f"ElasticTrainer: {what} makes an epoch of {batches} batches, and accumulate_grad_batches is "
                             f"{accumulation}: want a multiple of it: an epoch ends with a step")
        self.steps = batches // accumulation if self.limited else math.ceil(samples / self._step_samples)
        self.samples = min(samples, self.steps * self._step_samples)
        self._every = self._steps_between_validations(batches)

    def _steps_between_validations(self, batches):
        if self.at_end:
            return self.steps
        if isinstance(self._interval, float):
            every = max(1, int(batches * self._interval))
        else:
            every = self._interval
            if every > batches and not self._over_epochs:
                raise UsageError(f"ElasticTrainer: val_check_interval is {every}, and an epoch has {batches} batches: want no "
                                 "more, or check_val_every_n_epoch=None, with which it counts over epochs")
        if every % self.accumulation != 0:
            raise UsageError(f"ElasticTrainer: val_check_interval={self._interval!r} is {every} batches, and "
                             f"accumulate_grad_batches is {self.accumulation}: want a multiple of it: replicas validate after "
                             "a step")
        return every // self.accumulation

    def step_of(self, position):
        """The step of the epoch that is under way there, or due, from 0."""
        return position.cursor // self._step_samples

    def is_over(self, position):
        """Whether the epoch ends here, before its last sample."""
        return self.limited and position.cursor >= self.samples

    def validates_after(self, step, all_steps):
        """Whether a validation is due after this step of the epoch, from 0, and so many of the trial."""
        if self.at_end or not self.known:
            return step + 1 == self.steps
        return (all_steps if self._over_epochs else step + 1) % self._every == 0
