"""Lightning's loops over epochs and batches, where replicas share them: which batch comes next, the step, the end of an epoch,
and the state of training."""
import math
import pickle

import torch
from lightning.fabric.utilities.rank_zero import rank_zero_only
from lightning.pytorch.loops.fetchers import _DataFetcher
from lightning.pytorch.loops.fit_loop import _FitLoop
from lightning.pytorch.loops.optimization.automatic import ClosureResult, _AutomaticOptimization
from lightning.pytorch.loops.training_epoch_loop import _TrainingEpochLoop
from lightning.pytorch.trainer import call
from lightning.pytorch.trainer.connectors.data_connector import _DataLoaderSource

import espalier
import espalier.torch as adl
from espalier._runtime import runtime
from espalier.errors import UsageError
from espalier.integrations._lightning_loaders import elastic_loader, refuse_validation_loaders
from espalier.integrations._lightning_reports import EpochReports
from espalier.integrations._lightning_strategy import NAME

_ENDLESS = 2**62


class _Batches(_DataFetcher):
    """The loader's, one at a time: which comes next is known when the step before is done."""

    def __init__(self, loader, epoch_loop):
        super().__init__()
        self._loader = loader
        self._epoch_loop = epoch_loop
        self._count = 0

    def __iter__(self):
        self.reset()
        self.iterator, self._count = iter(self._loader), 0
        return self

    def __next__(self):
        self._epoch_loop.before_batch()
        self._start_profiler()
        try:
            batch = next(self.iterator)
        finally:
            self._stop_profiler()
        self.done = self._epoch_loop.begin_batch()
        self._count += 1
        return batch, self._count - 1, 0

    def leave(self):
        if self.iterator is not None:
            self.iterator.close()
        self.iterator = None


class FitLoop(_FitLoop):
    """Over epochs. They are those of the trial."""

    def setup_data(self):
        if self._combined_loader is not None:
            return
        trainer = self.trainer
        if trainer.limit_train_batches == 0 or not self._data_source.is_defined() or self._data_source.instance is None:
            super().setup_data()  # which says what is missing
            return
        given = self._data_source.dataloader()
        if trainer.strategy.manual and isinstance(given, adl.AdaptiveDataLoader):
            raise UsageError("ElasticTrainer: the module has automatic_optimization=False, and the training loader is an "
                             "AdaptiveDataLoader, which may cut a step into several batches: want a plain DataLoader")
        loader = elastic_loader(given, trainer.accumulate_grad_batches)
        self._data_source = _DataLoaderSource(loader, "")
        length = trainer.accumulation.made(loader, given)
        asked = trainer.limit_train_batches, trainer.val_check_interval
        trainer.limit_train_batches = trainer.val_check_interval = 1.0  # Lightning would count batches of one replica
        super().setup_data()
        trainer.limit_train_batches, trainer.val_check_interval = asked
        self.max_batches = length.steps
        self._data_fetcher.teardown()
        self._data_fetcher = _Batches(loader, self.epoch_loop)
        self.epoch_loop.loader, self.epoch_loop.length = loader, length

    def run(self):
        self.setup_data()
        if self.skip:
            return
        self.epoch_loop.states = _States(self.trainer)
        self.epoch_loop.seen = adl.Accumulator()
        self.reset()
        self.on_run_start()
        refuse_validation_loaders(self.trainer)
        until = self.max_epochs if self.max_epochs != -1 else _ENDLESS
        reports, first = EpochReports(self.trainer), None
        for epoch in adl.remaining_epochs_until(until):  # joins the group; the state is that of the trial from here on
            self.epoch_loop.note_group()
            first = epoch if first is None else first
            for counts in (self.epoch_progress.current, self.epoch_progress.total):
                counts.ready = counts.started = counts.processed = counts.completed = epoch
            self.on_advance_start()
            self.advance()
            self.on_advance_end()
            reports.report(epoch + 1)
            if self.done:
                break
        self.epoch_progress.current.completed = self.epoch_progress.current.processed
        reports.end(self.epoch_progress.current.processed if first == 0 else 0)
        self.on_run_end()


class _WholeLoss(ClosureResult):
    """A batch's, as it is: the group weighs it by its samples, where Lightning would divide it by the batches of a step."""

    @classmethod
    def from_training_step_output(cls, training_step_output, normalize=1):
        return super().from_training_step_output(training_step_output, 1)


class _Optimization(_AutomaticOptimization):
    output_result_cls = _WholeLoss

    def _make_zero_grad_fn(self, batch_idx, optimizer):
        return super()._make_zero_grad_fn(0, optimizer)  # the first of a step as each other: the loader begins with none


class EpochLoop(_TrainingEpochLoop):
    """Over the batches of an epoch, of which this replica has its share. An epoch's end is where the loader ends."""

    loader = None
    length = None      # of epochs
    seen = None        # of the epoch: what is logged, and the loss
    validated = False  # whether the epoch was
    states = None      # of callbacks
    mean_loss = math.nan
    has_loss = False   # whether training_step returns one
    _over = False
    _step = 0          # of the epoch, of the present batch
    _last = False      # it is the epoch's last one

    def __init__(self, trainer, min_steps, max_steps):
        super().__init__(trainer, min_steps, max_steps)
        self.automatic_optimization = _Optimization(trainer)

    def note_group(self):
        rank_zero_only.rank = adl.rank()
        strategy = self.trainer.strategy
        steps = strategy.parallel.steps
        self.automatic_optimization.optim_progress.optimizer.step.total.completed = steps
        if strategy.manual:
            counts = self.manual_optimization.optim_step_progress.total
            counts.ready = counts.completed = strategy.manual.steps
        self._batches_that_stepped = steps

    def run(self, data_fetcher):
        self._over = self.validated = self._last = False
        self.length = self.trainer.accumulation.length()
        self.trainer.fit_loop.max_batches = self.length.steps
        self.reset()
        data_fetcher._start_profiler, data_fetcher._stop_profiler = self._on_before_fetch, self._on_after_fetch
        iter(data_fetcher)
        while not self._over and not self.done:
            try:
                self.advance(data_fetcher)
                self.on_advance_end(data_fetcher)
                self._over = self.length.is_over(runtime().position)
            except StopIteration:
                self._over = True
            finally:
                self.on_iteration_done()
        data_fetcher.leave()
        self.batch_progress.is_last_batch = self._over
        self._merge()
        if self._over:
            self.update_lr_schedulers("epoch", update_plateau_schedulers=False)
        if self._validates_at_end():
            self._validate()

    def before_batch(self):
        """The next one is to be fetched, if the epoch has one."""
        if self.length.is_over(runtime().position):  # others came to its end while this replica joined them
            raise StopIteration
        if self.trainer.strategy.manual:
            self.trainer.strategy.manual.before_batch()

    def begin_batch(self):
        """Says whether the batch is of the epoch's last step. Where each step has one, Lightning is to number it as the group
        does, which began the epoch maybe without this replica."""
        strategy = self.trainer.strategy
        if strategy.manual:
            strategy.manual.begin_batch()
        if not self.length.known:
            return False
        self._step = step = self.length.step_of(runtime().position)
        if self.length.accumulation == 1:
            counts = self.batch_progress.current
            counts.ready = counts.started = counts.processed = counts.completed = step
        self._last = step + 1 >= self.length.steps
        return self._last and not self.loader.before_last

    def advance(self, data_fetcher):
        before = self._logged()
        super().advance(data_fetcher)
        size = self.loader.current_local_bsz
        for key, parts in self._logged().items():
            self.seen[key] += parts - before.get(key, 0)
        if self.trainer.strategy.loss is not None:
            self.seen["loss"] += float(self.trainer.strategy.loss) * size
        self.seen["samples"] += size

    def on_advance_end(self, data_fetcher):
        super().on_advance_end(data_fetcher)
        self.note_group()

    def _validates_at_end(self):
        if self._over:
            return self.length.validates_after(self.length.steps - 1, self.trainer.strategy.parallel.steps)
        return self._is_training_done and self.length.at_end

    def _validate(self):
        if not self._should_check_val_epoch():
            return
        trainer = self.trainer
        trainer.validating = True
        first = trainer._logger_connector._first_loop_iter
        runtime().begin_whole_evaluation()
        self._batches_that_stepped -= 1  # Lightning validates before it counts the last batch
        call._call_lightning_module_hook(trainer, "on_validation_model_zero_grad")
        self.val_loop.run()
        self._batches_that_stepped += 1
        trainer.training = True
        trainer._logger_connector._first_loop_iter = first
        self.validated = True
        self.states.note_validation(trainer.strategy.parallel.steps)

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
        self.has_loss = "loss" in sums
        self.mean_loss = sums["loss"] / sums["samples"] if self.has_loss else math.nan
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
        return self.loader.before_last

    def _should_check_val_fx(self, data_fetcher):
        """Before the epoch's end, where all replicas come to it."""
        trainer = self.trainer
        if not self._should_check_val_epoch() or self._should_accumulate() or trainer.strategy.dropped():
            return False
        stops = trainer.should_stop and trainer.fit_loop._can_stop_early
        due = (self.length.known and not self._last and
               self.length.validates_after(self._step, trainer.strategy.parallel.steps))
        if not stops and not due:
            return False
        runtime().begin_whole_evaluation()
        self.validated = True
        self.states.note_validation(trainer.strategy.parallel.steps)
        return True


class _States(espalier.State):
    """Of callbacks, and what the epochs before have come to."""

    def __init__(self, trainer):
        super().__init__(NAME)
        self._trainer = trainer
        self._validated_at = None  # the trial's steps at the last validation
        self._received = None      # from those that this replica has joined

    def _callbacks(self):
        return [(c.state_key, c) for c in self._trainer.callbacks if c.state_dict()]

    def save(self, fileobj):
        trainer = self._trainer
        manual = trainer.strategy.manual
        metrics = {name: value.cpu() for name, value in trainer.callback_metrics.items()}
        pickle.dump({"callbacks": [(key, c.state_dict()) for key, c in self._callbacks()], "metrics": metrics,
                     "should_stop": trainer.should_stop, "optimizer_steps": manual.steps if manual else 0,
                     "validated_at": self._validated_at}, fileobj)

    def load(self, fileobj):
        read = pickle.load(fileobj)
        own = self._callbacks()
        theirs = [key for key, _ in read["callbacks"]]
        if [key for key, _ in own] != theirs:
            raise UsageError(f"ElasticTrainer: the callbacks with a state are {[key for key, _ in own]}, and the trial's are "
                             f"{theirs}: add the same on each replica, in the same order")
        self._received, self._validated_at = read, read.get("validated_at")
        self._restore()
        if self._trainer.strategy.manual:
            self._trainer.strategy.manual.steps = read["optimizer_steps"]

    def _restore(self):
        for (_, callback), (_, state) in zip(self._callbacks(), self._received["callbacks"]):
            callback.load_state_dict(state)
        self._trainer._logger_connector._callback_metrics.update(self._received["metrics"])
        self._trainer.should_stop = self._received["should_stop"]

    def note_validation(self, steps):
        """There was one after so many steps of the trial. A replica that joins others when they have validated does it again by
        itself, and then has what they had after theirs: else its callbacks would have seen one validation twice."""
        if self._received is not None and self._validated_at == steps:
            self._restore()
        self._received, self._validated_at = None, steps
