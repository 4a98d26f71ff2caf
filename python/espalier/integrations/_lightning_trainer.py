"""Lightning's Trainer as an elastic trial. Its loop over epochs and batches is Lightning's, but for what replicas share: which
batch comes next, the step, the end of an epoch, and the state of training."""
import math
import numbers
import pickle
import warnings

import lightning
import torch
from lightning.fabric.utilities.rank_zero import rank_zero_only
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.loops.fetchers import _DataFetcher
from lightning.pytorch.loops.fit_loop import _FitLoop
from lightning.pytorch.loops.training_epoch_loop import _TrainingEpochLoop
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning.pytorch.trainer.connectors.data_connector import _DataLoaderSource
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler

import espalier
import espalier.torch as adl
from espalier import _library
from espalier._runtime import runtime
from espalier.errors import UsageError
from espalier.integrations._lightning_group import InGroup
from espalier.torch.evaluation import summed

_TESTED = "2.6."
_NAME = "espalier.lightning_trainer"
_ENDLESS = 2**62
_METRIC = "val_loss"


class ElasticTrainer(Trainer):
    """A Trainer whose trial is resized while it trains. `fit` is called once in a process.

    The batch_size of the training loader times `accumulate_grad_batches` is the batch of all replicas together, and stays it;
    a `training_step` gets at most batch_size samples. Loaders are plain DataLoaders (or, for training, AdaptiveDataLoaders).
    What `training_step` logs for an epoch is of all samples of all replicas, but for what a replica that is lost had logged in
    that epoch. What it logs for a step, and torchmetrics' objects, are of the replica's own samples. Validation is done whole by
    each replica, so that all come to the same metrics and the same decisions. Callbacks' states and counters are handed to
    replicas that join. Rank 0 writes checkpoints and logs; the trial's own checkpoints, from which it goes on, are Espalier's.

    trial_metric: which of the logged metrics is reported to the trial after each epoch with a validation, or each epoch where
    there is none (default: "val_loss" where it is logged, else the epoch's mean training loss), with the other ones beside it.
    scaling_rule: as of AdaptiveDataParallel.
    Other arguments are Trainer's. Without arguments there is no logger, and ModelCheckpoint only if it is among the callbacks.
    """

    def __init__(self, *, trial_metric=None, scaling_rule=None, **arguments):
        if not lightning.__version__.startswith(_TESTED):
            warnings.warn(f"ElasticTrainer was tested with lightning {_TESTED}*, and this is {lightning.__version__}: its "
                          "Trainer may have changed", stacklevel=2)
        trial = espalier.trial()
        _refuse_arguments(arguments)
        callbacks = arguments.get("callbacks") or []
        callbacks = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
        defaults = {"logger": False, "enable_progress_bar": not trial.elastic, "enable_model_summary": not trial.elastic,
                    "enable_checkpointing": any(isinstance(c, Checkpoint) for c in callbacks)}
        super().__init__(**defaults | arguments, devices=1, accelerator="cpu" if trial.device.type == "cpu" else "gpu",
                         strategy=_Strategy(trial.device, scaling_rule))
        self.elastic_accumulation = self.accumulate_grad_batches
        self.accumulate_grad_batches = 1  # the group weighs microbatches by their samples
        self.trial_metric = trial_metric
        epoch_loop = _EpochLoop(self, min_steps=self.fit_loop.min_steps, max_steps=self.fit_loop.max_steps)
        self.fit_loop = _Loop(self, min_epochs=self.fit_loop.min_epochs, max_epochs=self.fit_loop.max_epochs)
        self.fit_loop.epoch_loop = epoch_loop

    def fit(self, model, train_dataloaders=None, val_dataloaders=None, datamodule=None, ckpt_path=None, weights_only=None):
        if ckpt_path is not None:
            raise UsageError(f"ElasticTrainer.fit: ckpt_path is {ckpt_path!r}: want None: a trial goes on from its own "
                             "checkpoints by itself. To begin with a trained model, load it before")
        if not model.automatic_optimization:
            raise UsageError("ElasticTrainer.fit: the module has automatic_optimization=False: want True. For a loop of your "
                             "own use Lightning Fabric with ElasticStrategy, or espalier.torch")
        super().fit(model, train_dataloaders, val_dataloaders, datamodule, weights_only=weights_only)


def _refuse_arguments(given):
    """What the replicas of a trial cannot share, or what their engine does itself."""
    for name, allowed, right in (
            ("strategy", ("auto",), "none: ElasticTrainer brings its own"),
            ("accelerator", ("auto",), "none: the trial's slot says which device there is"),
            ("devices", ("auto", 1, "1"), "1: each replica is a process with one device"),
            ("num_nodes", (1,), "1: the pool decides on which machines replicas are"),
            ("sync_batchnorm", (False, None), "False"),
            ("limit_train_batches", (None, 1.0), "1.0: each sample is dealt once an epoch"),
            ("overfit_batches", (0, 0.0), "0"),
            ("fast_dev_run", (False, 0), "False"),
            ("val_check_interval", (None, 1.0), "1.0: validation is at an epoch's end"),
            ("reload_dataloaders_every_n_epochs", (0,), "0"),
            ("barebones", (False,), "False")):
        if given.pop(name, allowed[0]) not in allowed:
            raise UsageError(f"ElasticTrainer: {name}: want {right}")
    if given.get("check_val_every_n_epoch", 1) is None:
        raise UsageError("ElasticTrainer: check_val_every_n_epoch is None: want a number: validation is at an epoch's end")


class _Strategy(InGroup, SingleDeviceStrategy):
    """One process with one device, which steps with its group."""

    strategy_name = "espalier"

    def __init__(self, device, scaling_rule):
        super().__init__(device=device)
        self._scaling_rule = scaling_rule
        self.parallel = None
        self.loss = None  # of the last batch

    # ---- the step

    def setup(self, trainer):
        super().setup(trainer)
        if trainer.state.fn != "fit" or self.parallel is not None:
            return
        if len(self.optimizers) != 1:
            raise UsageError(f"ElasticTrainer: configure_optimizers gives {len(self.optimizers)} optimizers: want one")
        if len(self.lr_scheduler_configs) > 1:
            raise UsageError(f"ElasticTrainer: configure_optimizers gives {len(self.lr_scheduler_configs)} schedulers: want "
                             "one; torch's SequentialLR and ChainedScheduler make one of several")
        scheduler = None
        for config in self.lr_scheduler_configs:
            if config.interval == "step" and config.frequency != 1:
                raise UsageError(f'ElasticTrainer: the scheduler has interval "step" and frequency {config.frequency}: want '
                                 "1: replicas count batches of their own")
            scheduler = config.scheduler
        self.parallel = adl.AdaptiveDataParallel(self.lightning_module, self.optimizers[0], scheduler,
                                                 getattr(self.precision_plugin, "scaler", None), self._scaling_rule)

    @property
    def handles_gradient_accumulation(self):
        return True  # optimizer_step comes for each batch

    def optimizer_step(self, optimizer, closure, model=None, **kwargs):
        def loss():
            self.loss = closure()
            if self.loss is None:
                raise UsageError("ElasticTrainer: training_step returned None: want a loss of each batch, since other replicas "
                                 "wait for its gradients")
            return self.loss

        plugin, module = self.precision_plugin, self.lightning_module
        if getattr(plugin, "scaler", None) is not None:
            return plugin.optimizer_step(optimizer, model=module, closure=loss, **kwargs)
        # Only in a step's last batch are there gradients to look at and to clip.
        result = loss() if self._accumulates() else plugin._wrap_closure(module, optimizer, loss)
        optimizer.step(**kwargs)
        return result

    @staticmethod
    def _accumulates():
        return runtime().current_loader.accumulating()

    def teardown(self):
        """The model stays where it is: the trial's last checkpoint may still be made of it."""
        self.precision_plugin.teardown()
        self.checkpoint_io.teardown()

    # ---- between replicas

    def reduce(self, tensor, *args, **kwargs):
        return tensor  # metrics are merged where an epoch's training ends; validation is whole on each replica

    def all_gather(self, tensor, group=None, sync_grads=False):
        if sync_grads or runtime().current_loader is not None:
            raise UsageError("ElasticTrainer: all_gather is for where all replicas come to it, such as "
                             "on_train_epoch_start, and without gradients")
        own = {"parts": [(adl.rank(), tensor.detach().cpu())]}
        parts = (summed(runtime(), _NAME, lambda: own) if runtime().joined else own)["parts"]
        return torch.stack([part for _, part in sorted(parts, key=lambda of: of[0])]).to(tensor.device)


class _Batches(_DataFetcher):
    """The loader's, one at a time: which comes next is known when the step before is done."""

    def __init__(self, loader):
        super().__init__()
        self._loader = loader
        self._count = 0

    def __iter__(self):
        self.reset()
        self.iterator, self._count = iter(self._loader), 0
        return self

    def __next__(self):
        self._start_profiler()
        try:
            batch = next(self.iterator)
        finally:
            self._stop_profiler()
        self._count += 1
        return batch, self._count - 1, 0

    def leave(self):
        if self.iterator is not None:
            self.iterator.close()
        self.iterator = None


class _Loop(_FitLoop):
    """Over epochs. They are those of the trial."""

    def setup_data(self):
        if self._combined_loader is not None:
            return
        if self._data_source.is_defined() and self._data_source.instance is not None:
            loader = _elastic_loader(self._data_source.dataloader(), self.trainer.elastic_accumulation)
            self._data_source = _DataLoaderSource(loader, "")
            super().setup_data()
            self._data_fetcher.teardown()
            self._data_fetcher = _Batches(loader)
            self.epoch_loop.loader = loader
        else:
            super().setup_data()  # which says what is missing

    def run(self):
        self.setup_data()
        if self.skip:
            return
        _States(self.trainer)
        self.epoch_loop.seen = adl.Accumulator()
        self.reset()
        self.on_run_start()
        _refuse_validation_loaders(self.trainer)
        until = self.max_epochs if self.max_epochs != -1 else _ENDLESS
        for epoch in adl.remaining_epochs_until(until):  # joins the group; the state is that of the trial from here on
            self.epoch_loop.note_group()
            for counts in (self.epoch_progress.current, self.epoch_progress.total):
                counts.ready = counts.started = counts.processed = counts.completed = epoch
            self.on_advance_start()
            self.advance()
            self.on_advance_end()
            self._report(epoch + 1)
            if self.done:
                break
        self.epoch_progress.current.completed = self.epoch_progress.current.processed
        self.on_run_end()

    def _report(self, epoch):
        trainer, loop = self.trainer, self.epoch_loop
        if trainer.enable_validation and not loop.validated:
            return
        metrics = {name: value.item() if isinstance(value, torch.Tensor) else value
                   for name, value in trainer.callback_metrics.items()}
        metrics = {name: value for name, value in metrics.items() if isinstance(value, numbers.Real)}
        wanted = trainer.trial_metric
        if wanted is not None and wanted not in metrics:
            raise UsageError(f'ElasticTrainer: trial_metric is "{wanted}", and logged are '
                             f'{", ".join(sorted(metrics)) or "none"}')
        if wanted is None and _METRIC in metrics:
            wanted = _METRIC
        value = loop.mean_loss if wanted is None else metrics.pop(wanted)
        espalier.trial().report(epoch, value, **metrics)


class _EpochLoop(_TrainingEpochLoop):
    """Over the batches of an epoch, of which this replica has its share. An epoch's end is where the loader ends."""

    loader = None
    seen = None        # of the epoch: what is logged, and the loss
    validated = False  # whether the epoch was
    mean_loss = math.nan
    _over = False

    def note_group(self):
        rank_zero_only.rank = adl.rank()
        steps = self.trainer.strategy.parallel.steps
        self.automatic_optimization.optim_progress.optimizer.step.total.completed = steps
        self._batches_that_stepped = steps

    def run(self, data_fetcher):
        self._over = self.validated = False
        self.reset()
        data_fetcher._start_profiler, data_fetcher._stop_profiler = self._on_before_fetch, self._on_after_fetch
        iter(data_fetcher)
        while not self._over and not self.done:
            try:
                self.advance(data_fetcher)
                self.on_advance_end(data_fetcher)
            except StopIteration:
                self._over = True
            finally:
                self.on_iteration_done()
        data_fetcher.leave()
        self.batch_progress.is_last_batch = self._over
        self._merge()
        if self._over:
            self.update_lr_schedulers("epoch", update_plateau_schedulers=False)
        if self._over or self._is_training_done:
            self._validate()

    def advance(self, data_fetcher):
        before = self._logged()
        super().advance(data_fetcher)
        size = self.loader.current_local_bsz
        for key, parts in self._logged().items():
            self.seen[key] += parts - before.get(key, 0)
        self.seen["loss"] += float(self.trainer.strategy.loss) * size
        self.seen["samples"] += size

    def on_advance_end(self, data_fetcher):
        super().on_advance_end(data_fetcher)
        self.note_group()

    def _validate(self):
        if not self._should_check_val_epoch():
            return
        trainer = self.trainer
        trainer.validating = True
        first = trainer._logger_connector._first_loop_iter
        self._batches_that_stepped -= 1  # Lightning validates before it counts the last batch
        self.val_loop.run()
        self._batches_that_stepped += 1
        trainer.training = True
        trainer._logger_connector._first_loop_iter = first
        self.validated = True

    # ---- what batches and replicas have in common

    def _logged(self):
        """Of each metric that is logged for epochs: its sum so far, and how many samples that is of."""
        found = {}
        for key, metric in self._results.items():
            if metric.is_tensor and metric.meta.on_epoch and (metric.meta.is_mean_reduction or metric.meta.is_sum_reduction):
                count = metric.cumulated_batch_size if metric.meta.is_mean_reduction else 0
                found[key] = torch.tensor([float(metric.value), float(count)], dtype=torch.float64)
        return found

    def _merge(self):
        """What was logged, over all samples of all replicas."""
        with self.seen.synchronized():
            sums = dict(self.seen)
            self.seen.clear()
        if not sums.get("samples"):
            return
        self.mean_loss = sums["loss"] / sums["samples"]
        for key in sums.keys() - {"loss", "samples"}:
            value, count = sums[key].tolist()
            metric = self._results.get(key)
            if metric is None:  # this replica had no batch in the epoch
                mean = torch.tensor(value / count if count else value)
                name = key.partition(".")[2]
                self.trainer._logger_connector._callback_metrics |= {name: mean, f"{name}_epoch": mean}
            else:
                metric._computed = None
                metric.value = torch.as_tensor(value, dtype=metric.value.dtype, device=metric.value.device)
                if metric.meta.is_mean_reduction:
                    metric.cumulated_batch_size = torch.as_tensor(int(count), device=metric.value.device)

    # ---- what Lightning asks

    @property
    def _is_training_done(self):
        return self._over or self.max_steps != -1 and self.global_step >= self.max_steps

    def _num_ready_batches_reached(self):
        return self._over

    def _should_accumulate(self):
        return self.loader.accumulating()

    def _should_check_val_fx(self, data_fetcher):
        return False  # at the epoch's end


class _States(espalier.State):
    """Of callbacks, and what the epochs before have come to."""

    def __init__(self, trainer):
        super().__init__(_NAME)
        self._trainer = trainer

    def _callbacks(self):
        return [(c.state_key, c) for c in self._trainer.callbacks if c.state_dict()]

    def save(self, fileobj):
        trainer = self._trainer
        metrics = {name: value.cpu() for name, value in trainer.callback_metrics.items()}
        pickle.dump({"callbacks": [(key, c.state_dict()) for key, c in self._callbacks()], "metrics": metrics,
                     "should_stop": trainer.should_stop}, fileobj)

    def load(self, fileobj):
        read = pickle.load(fileobj)
        own = self._callbacks()
        theirs = [key for key, _ in read["callbacks"]]
        if [key for key, _ in own] != theirs:
            raise UsageError(f"ElasticTrainer: the callbacks with a state are {[key for key, _ in own]}, and the trial's are "
                             f"{theirs}: add the same on each replica, in the same order")
        for (_, callback), (_, state) in zip(own, read["callbacks"]):
            callback.load_state_dict(state)
        self._trainer._logger_connector._callback_metrics.update(read["metrics"])
        self._trainer.should_stop = read["should_stop"]


def _elastic_loader(loader, accumulation):
    """The training loader in the place of a plain one with the same samples and options."""
    if isinstance(loader, adl.AdaptiveDataLoader):
        if accumulation != 1:
            raise UsageError(f"ElasticTrainer: accumulate_grad_batches is {accumulation}, and the training loader is an "
                             "AdaptiveDataLoader, which accumulates by local_bsz_bounds: want 1")
        return loader
    if type(loader) is not DataLoader:
        raise UsageError(f"ElasticTrainer: the training loader is a {type(loader).__name__}: want one DataLoader")
    sampler, streams = loader.sampler, isinstance(loader.dataset, torch.utils.data.IterableDataset)
    shuffled = type(sampler) is RandomSampler and not sampler.replacement and sampler.num_samples == len(loader.dataset)
    for wrong, right in ((loader.batch_size is None, "a batch_size, and no batch_sampler"),
                         (loader.drop_last, "drop_last=False: the last step of an epoch is shorter"),
                         (not streams and not shuffled and type(sampler) is not SequentialSampler,
                          f"no sampler of its own, and it has a {type(sampler).__name__}: the group deals the samples")):
        if wrong:
            raise UsageError(f"ElasticTrainer: the training loader: want {right}")
    workers = {"prefetch_factor": loader.prefetch_factor, "persistent_workers": loader.persistent_workers,
               "multiprocessing_context": loader.multiprocessing_context} if loader.num_workers else {}
    return adl.AdaptiveDataLoader(
        loader.dataset, batch_size=loader.batch_size * accumulation, shuffle=shuffled, training=True,
        local_bsz_bounds=(None, loader.batch_size), collate_fn=loader.collate_fn, num_workers=loader.num_workers,
        pin_memory=loader.pin_memory, timeout=loader.timeout, worker_init_fn=loader.worker_init_fn, **workers)


def _refuse_validation_loaders(trainer):
    loaders = trainer.val_dataloaders
    for loader in loaders if isinstance(loaders, (list, tuple)) else [loaders]:
        if isinstance(loader, adl.AdaptiveDataLoader):
            raise UsageError("ElasticTrainer: a validation loader is an AdaptiveDataLoader: want a plain DataLoader: each "
                             "replica validates on the whole of it")
