"""Loaders: each sample once per epoch, whatever happens to the group meanwhile."""
import collections
import contextlib
import ctypes
import math
import numbers
import typing
import warnings
from collections.abc import Iterator

import torch
from torch.autograd import profiler
from torch.utils.data import DataLoader, IterableDataset, Sampler

from espalier import _library
from espalier._runtime import is_open, runtime
from espalier._the_trial import the_trial
from espalier.errors import UsageError
from espalier.torch._datasets import (EndWithParent, SeededDataset, Slice, StreamedDataset, kept_generators, mix,
                                      reads_batches)
from espalier.torch._refusals import watch_steps

_FORECAST = 64  # microbatches that are asked for at a time
_END = object()


class _Plan(Sampler):
    """What a DataLoader is to read next; batches come in this order."""

    def __init__(self):
        self.next_batch = None  # returns the samples of a batch, or None

    def __iter__(self):
        while True:
            batch = self.next_batch()
            if batch is None:
                return
            yield batch

    def __len__(self):
        return 0


class AdaptiveDataLoader(DataLoader):
    """A DataLoader over a trial's replicas. `batch_size` is that of all replicas together. The training loader
    deals each sample once an epoch, and replicas come and go between its batches; other loaders cut their samples
    over the replicas, and are repeated from their start if one is lost. So does the training loader in a second
    loop of an epoch. After the last epoch all but the training loader may be read. Other options are DataLoader's.

    With an IterableDataset, each replica and each of its workers reads the whole stream and keeps its own samples;
    after a resize a stream may be opened again. It must therefore give the same samples in the same order each time it
    is opened for an epoch. Its method `set_epoch`, if it has one, is called with the epoch's number (from 0). Each
    epoch has as many samples as the data set's `__len__` says, or else as its first epoch, which is read once to count
    them. An iterator's method `skip(count)`, if it has one, is used to skip samples. The data set sees no workers, and must
    not divide its samples itself.

    With drop_last=True an epoch has as many samples as fill whole batches of `batch_size`, others in each epoch if they
    are shuffled. Without it an epoch's last batch may be of one sample, with which BatchNorm cannot train. Where the trial
    grows its batch, the epoch's last one is of what is left in either case.

    The training loader is the one that `prepare` or `training=True` names, or on which `autoscale_batch_size` was
    called; else the first with shuffle=True; else the first.
    """

    def __init__(self, dataset: torch.utils.data.Dataset, batch_size: int = 1, shuffle: bool = False, *,
                 training: bool | None = None, seed_samples: bool | None = None,
                 local_bsz_bounds: tuple[int | None, int | None] | None = None, gradient_accumulation: bool = True,
                 **kwargs: typing.Any) -> None:
        """training: whether this is the training loader. seed_samples: whether random generators are seeded before
        each sample is read (default: where the data set reads them one by one). local_bsz_bounds: least and most
        samples of one forward pass on one replica; what is more is accumulated, if gradient_accumulation is on."""
        the_trial()
        for refused in ("sampler", "batch_sampler"):
            if kwargs.get(refused) is not None:
                raise ValueError(f"AdaptiveDataLoader: {refused} is not taken: samples are dealt over the replicas")
        if not kwargs.get("in_order", True):
            raise UsageError("AdaptiveDataLoader: in_order is False: samples are dealt in an order, and a batch that "
                             "overtakes another would be taken for it: want in_order=True")
        streams = isinstance(dataset, IterableDataset)
        if streams and shuffle:
            raise UsageError("AdaptiveDataLoader: shuffle=True, and the data set is an IterableDataset, which has an "
                             "order of its own: want shuffle=False, and a data set that shuffles its stream")
        batch_size = _checked_batch_size(batch_size)
        if not streams and len(dataset) < 1:
            raise UsageError("AdaptiveDataLoader: the data set is empty")
        self._drops_last = bool(kwargs.pop("drop_last", False))  # DataLoader's own goes by batches of one process
        if self._drops_last and not streams and len(dataset) < batch_size:
            raise UsageError(f"AdaptiveDataLoader: drop_last=True leaves nothing of {len(dataset)} samples, which are less "
                             f"than the batch_size, {batch_size}: want a smaller batch_size, or drop_last=False")
        self.shuffle = shuffle
        self._global_batch = batch_size
        if local_bsz_bounds is not None and not (isinstance(local_bsz_bounds, (tuple, list)) and len(local_bsz_bounds) == 2):
            raise UsageError(f"AdaptiveDataLoader: local_bsz_bounds is {local_bsz_bounds!r}: want two numbers, the least and "
                             "the most samples of one forward pass, or None for either")
        low, high = local_bsz_bounds or (None, None)
        self._limits = {"min_atomic_batch_size": low or 0, "max_atomic_batch_size": high or 0,
                        "accumulation": int(gradient_accumulation)}
        if seed_samples is None:
            seed_samples = not reads_batches(dataset)
        self._plan = _Plan()
        self._seeded = seed_samples
        self._opening = False
        self._given = dataset
        self._trained_length = None  # of the data set when training began
        self._stream = StreamedDataset(dataset) if streams else None
        self._for_workers = self._stream if streams else SeededDataset(dataset) if seed_samples else dataset
        super().__init__(self._for_workers, batch_sampler=self._plan, **kwargs)
        run = runtime()
        if run.joined and training:
            raise UsageError("AdaptiveDataLoader: the training loader was made after training began: make it before "
                             "the loop over epochs, once. In a notebook restart the kernel: a process is one trial")
        run.loaders.append(self)
        self.made_late = run.joined  # training had begun
        self.under_training = False  # the loop that is under way takes steps
        self._asked = False  # the program has looked whether the present batch is its step's last
        self._steps_each = None  # whether the program calls step() also for batches before their step's last; None: unknown
        self._unstepped = 0  # how many of these, in the step under way, it has not, and has not asked
        self._left_first = False  # what was unknown has once been taken for left out
        if training:
            run.training_loader = self
        self._issued = collections.deque()  # microbatches that were handed to DataLoader, in its order
        self._upcoming = collections.deque()
        self._numbers = ()  # of the samples of a microbatch, as the library writes them
        self._last_begin = -1
        self._microbatch = None
        self._reading = None  # DataLoader's iterator of this epoch
        self._trained_in = None  # the epoch in which this loader has trained
        self._epoch_seed = (None, 0)  # of an epoch

    @property
    def dataset(self) -> torch.utils.data.Dataset:
        """The program's own, as it was given."""
        return self._for_workers if self._opening else self._given

    @dataset.setter
    def dataset(self, dataset: torch.utils.data.Dataset) -> None:
        """DataLoader's constructor sets that of the workers."""

    def _batches(self):
        """DataLoader's iterator, which keeps the data set that it finds here."""
        if self._stream is not None:
            self._stream.size(self._seed_of(0))  # which workers are to know
        self._opening = True
        given, self.worker_init_fn = self.worker_init_fn, EndWithParent(self.worker_init_fn)
        try:
            return super().__iter__()
        finally:
            self._opening = False
            self.worker_init_fn = given

    # ---- sizes

    @property
    def samples(self) -> int:
        """How many an epoch has."""
        size = len(self.dataset) if self._stream is None else self._stream.size(self._seed_of(0))
        return size - size % self._global_batch if self._drops_last else size

    @property
    def drop_last(self) -> bool:
        """Whether an epoch leaves out what does not fill a whole batch."""
        return self._drops_last

    @drop_last.setter
    def drop_last(self, value: bool) -> None:
        """DataLoader's constructor sets that of its batches, which are made here."""

    @property
    def batch_size(self) -> int:
        """Samples of a step over all replicas, as the program asks for it; `current_batch_size` is what a trial has grown
        to."""
        return runtime().position.batch_size if self._is_set_by_program() else self._global_batch

    @batch_size.setter
    def batch_size(self, value: int | None) -> None:  # DataLoader's constructor says None
        if value is not None:
            self._global_batch = value

    @property
    def next_batch_size(self) -> int:
        """That of the next epoch, as far as the program has said."""
        return runtime().position.next_batch_size if self._is_set_by_program() else self._global_batch

    def set_batch_size(self, batch_size: int) -> None:
        """From the next epoch on, or from the present one on where its first batch is yet to come, the batch of all replicas
        together has so many samples; it is the batch for which learning rates are meant, if the wrap named no
        `base_batch_size`. All replicas call it alike. One that joins later, and a trial that goes on from a checkpoint, has
        what was set. Not within an epoch's loop, and not where the trial chooses its batch itself."""
        batch_size = _checked_batch_size(batch_size)
        run = runtime()
        if batch_size == self.next_batch_size:
            return
        for wrong, why in ((self.grows, "autoscale_batch_size lets the trial choose it"),
                           (run.joined and not self.training, "this is not the training loader, and training has begun"),
                           (run.joined and self._drops_last, "drop_last=True, by which an epoch's samples would change"),
                           (self.under_training, "its loop is under way: call it before the loop or after it")):
            if wrong:
                raise UsageError(f"AdaptiveDataLoader.set_batch_size({batch_size}): {why}")
        if batch_size > self.samples:
            raise UsageError(f"AdaptiveDataLoader.set_batch_size({batch_size}): an epoch has {self.samples} samples: want no "
                             "more than these")
        if run.joined:
            run.library.set_batch_size(batch_size)
        else:
            self._global_batch = batch_size

    def _is_set_by_program(self):
        run = runtime()
        return run.joined and self.training and not run.facts.adaptive_batch

    def autoscale_batch_size(self, max_batch_size: int,
                             local_bsz_bounds: tuple[int | None, int | None] | None = None,
                             gradient_accumulation: bool = False) -> None:
        """Lets the trial grow its batch up to `max_batch_size` where its study says "adaptive"; `local_bsz_bounds`
        are those of one forward pass on one replica."""
        if max_batch_size < self._global_batch:
            raise ValueError("max_batch_size must be greater than or equal to batch_size")
        low, high = (local_bsz_bounds or (None, None))
        if low is not None and low > self._global_batch:
            raise ValueError("local_bsz_bounds[0] must be less than or equal to batch_size")
        if high is not None and high < self._global_batch:
            raise ValueError("local_bsz_bounds[1] must be greater than or equal to batch_size")
        run = runtime()
        if run.joined:
            raise UsageError("autoscale_batch_size was called after training began: call it before")
        self._limits = {"max_batch_size": max_batch_size, "min_atomic_batch_size": low or 0,
                        "max_atomic_batch_size": high or 0, "accumulation": int(gradient_accumulation)}
        run.training_loader = self
        if self._drops_last and self.grows and run.facts.adaptive_batch:
            warnings.warn(f"AdaptiveDataLoader: drop_last=True, and the batch may grow to {max_batch_size} samples: where "
                          f"it has grown, an epoch's last batch is of what is left of its {self.samples} samples, and may "
                          "be small", stacklevel=2)

    def describe(self) -> _library.Data:
        """What the library is told of it before training begins."""
        self._trained_length = None if self._stream is not None else len(self.dataset)
        return _library.Data(size=self.samples, batch_size=self._global_batch, **self._limits)

    @property
    def grows(self) -> bool:
        """Whether the trial may take a larger batch than `batch_size`."""
        return self._limits.get("max_batch_size", 0) > self._global_batch

    @property
    def training(self) -> bool:
        """Whether the trial trains on this loader; it evaluates on the others."""
        return runtime().training_loader is self

    @property
    def current_local_bsz(self) -> int | None:
        """Samples of this replica's present batch; None outside of the loop."""
        return self._microbatch.size if self._microbatch is not None else None

    @property
    def current_batch_size(self) -> int | None:
        """Samples of the present step over all replicas; None outside of the loop."""
        if self._microbatch is None:
            return None
        return runtime().position.batch_size if self.training else self._global_batch

    @property
    def accumulation_steps(self) -> int:
        """Batches of a step before its last one."""
        self._asked = True
        return self._batches_before_last()

    def _batches_before_last(self):
        return max(runtime().position.microbatches - 1, 0) if self.training else 0

    def accumulating(self) -> bool:
        """Whether no step comes of the present batch: it is not its step's last, or step() was called and has come to
        nothing, because a replica was lost or has left the step out."""
        self._asked = True
        return self.before_last or self.under_training and any(
            model.outcome in (_library.DROPPED, _library.LEFT_OUT) for model in runtime().models)

    @property
    def before_last(self) -> bool:
        """Whether the present batch is not its step's last, whatever comes of the step."""
        return self._accumulating

    def was_left_out(self) -> bool:
        """Whether the program leaves out a batch before its step's last, as one without a step(): where it has not asked
        whether it is to step, and calls step() for others like it. Who counts batches by himself steps with the last alone.
        While nothing is known of it, a single batch without a step() counts as left out."""
        if not self._accumulating:
            self._unstepped = 0
            return False
        if any(model.came_to_step for model in runtime().models):
            self._steps_each = True
            return self._unstepped > 0
        if self._asked:
            return False
        self._unstepped += 1
        if self._steps_each is None and self._unstepped == runtime().position.microbatches - 1:
            if self._unstepped == 1 and not self._left_first:
                self._left_first = True
                return True
            self._steps_each = False
        return bool(self._steps_each)

    def __len__(self) -> int:
        return math.ceil(self.samples / self.batch_size)

    def to_tensorboard(self, writer: typing.Any, global_step: int, tag_prefix: str = "") -> None:
        """Writes what AdaptDL writes: the global batch size, this replica's part of it, and the accumulation steps."""
        if tag_prefix and not tag_prefix.endswith("/"):
            tag_prefix += "/"
        writer.add_scalar(tag_prefix + "Total_Batch_Size", runtime().position.batch_size, global_step)
        writer.add_scalar(tag_prefix + "Local_Batch_Size", self.current_local_bsz or 0, global_step)
        writer.add_scalar(tag_prefix + "Accumulation_Steps", self._batches_before_last(), global_step)

    # ---- the loop

    def __iter__(self) -> Iterator[typing.Any]:
        run = runtime()
        if run.current_loader is not None:
            raise RuntimeError(self._overlapping(run.current_loader))
        trains = self.training and self._trained_in != run.in_epoch
        if not run.in_group or trains and run.in_epoch is None:
            sample = "next(iter(dataset))" if self._stream is not None else "dataset[0]"
            raise UsageError("an AdaptiveDataLoader is read within a loop over epochs, in which its replica belongs to a "
                             "group: for epoch in adl.epochs(N), or in AdaptDL's remaining_epochs_until(N): for batch in "
                             f"loader. For a look at one batch: loader.collate_fn([{sample}])")
        run.current_loader = self
        self.under_training = trains
        watch_steps(run)
        try:
            yield from (self._train() if trains else self._evaluate())
        finally:
            run.current_loader = None
            self.under_training = False
            self._microbatch = None

    def _overlapping(self, other):
        under_way = "the training loader" if other.under_training else f"a loader of {other.samples} samples"
        return (f"overlapping dataloader iterations detected: a loop over an AdaptiveDataLoader of {self.samples} samples "
                f"begins while one over {under_way} is under way. Within a loop over the training loader evaluate by "
                "adl.evaluate(fn, dataset, batch_size). An iterator that the program still holds is under way until "
                "its close()")

    def _refuse_another_length(self):
        """Epochs are dealt by the length that the data set had when training began."""
        if self._stream is None and len(self.dataset) != self._trained_length:
            raise UsageError(f"AdaptiveDataLoader: the training data set has {len(self.dataset)} samples, and had "
                             f"{self._trained_length} when training began: want as many in every epoch. A data set of "
                             "a fixed length may choose anew which samples it gives")

    def _train(self):
        run = runtime()
        self._refuse_another_length()
        # Workers that have read for a rehearsal go on here.
        self._begin_reading(self._next_forecast, self._reading if self._trained_in is None else None)
        read = self._read if self._reads_ahead() else self._read_now
        while True:
            microbatch = run.next_microbatch()
            if microbatch is None:
                break
            batch = read(microbatch)
            self._accumulating = not microbatch.last
            self._microbatch = microbatch
            self._asked = False
            run.begin_microbatch()
            try:
                yield batch
            except GeneratorExit:
                run.ops.leave_loop()
                raise
        self._reading = None
        self._trained_in = run.in_epoch

    def _evaluate(self):
        run = runtime()
        evaluation = run.begin_evaluation()
        while evaluation.state == _library.Evaluation.TO_DO:
            if not run.share_buffers(evaluation):
                continue
            before = run.sums.snapshot()
            pieces = self._share()
            self._begin_reading(lambda pieces=pieces: next(pieces, None))
            reading = self._batches()
            while (batch := self._next_of(reading)) is not _END:
                if run.library.abandoned():
                    break
                self._microbatch = _library.Microbatch(size=self._issued_sizes.popleft())
                yield batch
            del reading  # with its workers
            if run.end_evaluation(evaluation):
                return
            run.sums.restore(before)

    def _share(self):
        """This replica's batches of samples."""
        size = self.samples
        epoch = runtime().in_epoch or 0
        in_all = len(self.dataset) if self._stream is None else size
        begin, end = runtime().share(size)
        batch = max(1, math.ceil(self._global_batch / runtime().position.replicas))
        self._issued_sizes = collections.deque()
        for at in range(begin, end, batch):
            count = min(batch, end - at)
            self._issued_sizes.append(count)
            if self._stream is not None:
                yield self._of_stream(epoch, at, count)
            else:
                yield self._with_seeds(self._ordered(in_all, epoch, at, count), epoch)

    # ---- the program's random generators

    def _keeping_generators(self):
        """Where this process seeds generators in order to read, its program draws on as if it did not."""
        return kept_generators() if self._seeded and self.num_workers == 0 else contextlib.nullcontext()

    def _next_of(self, reading):
        """The next batch of DataLoader's iterator, or _END."""
        with self._keeping_generators():
            return next(reading, _END)

    # ---- reading a batch when it is wanted

    def _reads_ahead(self):
        """Whether DataLoader's own iterator reads: it has workers, memory to pin, or a stream to go along. Without
        these it would add nothing but time."""
        return self.num_workers > 0 or self.pin_memory or self._stream is not None

    def _read_now(self, wanted):
        """As DataLoader reads without workers, label in torch's profiles included."""
        samples = self._samples(wanted)
        if profiler._is_profiler_enabled:
            with profiler.record_function("enumerate(DataLoader)#AdaptiveDataLoader.__next__"):
                return self._fetch(samples)
        return self._fetch(samples)

    def _fetch(self, samples):
        dataset = self._for_workers
        at_once = getattr(dataset, "__getitems__", None)
        with self._keeping_generators():
            return self.collate_fn(at_once(samples) if at_once else [dataset[sample] for sample in samples])

    # ---- reading ahead

    def _begin_reading(self, next_batch, reading=None):
        self._plan.next_batch = next_batch
        self._reading = reading
        self._accumulating = False
        self._forget_forecast(-1)

    def _forget_forecast(self, last_begin):
        self._upcoming.clear()
        self._last_begin = last_begin

    def _next_forecast(self):
        """The samples of the next batch that DataLoader is to read, as long as the epoch lasts."""
        run = runtime()
        if not self._upcoming:
            count = len(self._issued) + _FORECAST
            forecast = (_library.Microbatch * count)()
            found = run.library.forecast(forecast, count)
            for i in range(found):
                m = forecast[i]
                if m.epoch == run.in_epoch and m.begin > self._last_begin:
                    self._upcoming.append(_library.Microbatch(m.epoch, m.begin, m.size))
        if not self._upcoming:
            return None
        microbatch = self._upcoming.popleft()
        self._last_begin = microbatch.begin
        self._issued.append(microbatch)
        return self._samples(microbatch)

    def _samples(self, microbatch):
        if self._stream is not None:
            return self._of_stream(microbatch.epoch, microbatch.begin, microbatch.size)
        samples = self._ordered(self._trained_length, microbatch.epoch, microbatch.begin, microbatch.size)
        return self._with_seeds(samples, microbatch.epoch)

    def _ordered(self, size, epoch, begin, count):
        """The samples at `count` places from `begin` on, of an epoch of a data set of `size` samples: with drop_last an epoch
        has the first ones of its order."""
        if not self.shuffle:
            return list(range(begin, begin + count))
        if len(self._numbers) != count:
            self._numbers = (_library._i64 * count)()
        runtime().library.samples(size, epoch, begin, count, self._numbers)
        return self._numbers[:]

    def _of_stream(self, epoch, begin, count):
        return Slice(epoch, begin, count, self._seed_of(epoch))

    def _seed_of(self, epoch):
        """None where samples are not seeded."""
        if self._seeded and self._epoch_seed[0] != epoch:
            self._epoch_seed = (epoch, mix(runtime().facts.seed, epoch))
        return self._epoch_seed[1] if self._seeded else None

    def _with_seeds(self, samples, epoch):
        if not self._seeded:
            return samples
        seed = self._seed_of(epoch)
        return [(sample, mix(seed, sample)) for sample in samples]

    def _start_reading(self):
        self._issued.clear()
        with torch.random.fork_rng(devices=()):  # DataLoader draws a seed for its workers
            self._reading = self._batches()

    def rehearsed_batch(self, count: int) -> typing.Any:
        """Before training: a batch of so many samples, read as those of training are. Workers that are started for it stay,
        and what they have read ahead is dropped by the first batch of training."""
        first = _library.Microbatch(0, 0, count)
        if not self._reads_ahead():
            return self._fetch(self._samples(first))

        def again():
            self._issued.append(first)
            return self._samples(first)

        self._begin_reading(again)
        try:
            self._start_reading()
            batch = self._next_of(self._reading)
        except BaseException:
            self._reading = None
            raise
        self._issued.popleft()
        return batch

    def _read(self, wanted):
        """The batch of that microbatch. Batches that were read for a forecast that has turned out wrong are
        dropped on the way."""
        asked_again = False
        while True:
            if self._reading is None:
                self._forget_forecast(wanted.begin - 1)
                self._start_reading()
            batch = self._next_of(self._reading)
            if batch is _END:
                self._reading = None  # the forecast ended too early
                continue
            got = self._issued.popleft()
            if got.key() == wanted.key():
                break
            if not asked_again:
                asked_again = True
                self._forget_forecast(wanted.begin - 1)
        return batch


def _checked_batch_size(batch_size):
    if not isinstance(batch_size, numbers.Integral) or isinstance(batch_size, bool) or batch_size < 1:
        raise UsageError(f"AdaptiveDataLoader: batch_size is {batch_size!r}: want a positive whole number")
    return int(batch_size)


def current_dataloader() -> AdaptiveDataLoader | None:
    """The loader that is being iterated, or None."""
    return runtime().current_loader if is_open() else None


class ElasticSampler(Sampler):
    """AdaptDL's sampler: partitions samples over the replicas, equally many for each, and goes on from an index
    within the epoch."""

    def __init__(self, dataset: torch.utils.data.Dataset, shuffle: bool = True) -> None:
        from espalier import env
        self.dataset = dataset
        self.shuffle = shuffle
        self.num_replicas = env.num_replicas()
        self.rank = env.replica_rank()
        self.epoch = 0
        self.index = 0

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        base = self.index // size
        indices = []
        if self.shuffle:
            for epoch in (base, base + 1):
                generator = torch.Generator()
                generator.manual_seed(hash((self.epoch, epoch)) & 0x7FFFFFFF)
                indices.append(torch.randperm(size, generator=generator).tolist())
            indices = indices[0][self.index % size:] + indices[1]
        else:
            indices = list(range(size))[self.index % size:] + list(range(size))
        count = len(self) * self.num_replicas
        return iter(indices[:count][self.rank::self.num_replicas])

    def __len__(self) -> int:
        return math.ceil((len(self.dataset) - self.index % len(self.dataset)) / self.num_replicas)

    def set_epoch(self, epoch: int, index: int = 0) -> None:
        """The order of the next iteration is that of `epoch`, and it begins at its sample number `index`."""
        self.epoch = epoch
        self.index = index
