"""What DataLoader's workers read in the place of the program's data set."""
import contextlib
import functools
import math
import multiprocessing
import os
import random
import sys
import threading
import time
import typing

import torch
from torch.utils.data import Dataset, StackDataset, Subset
from torch.utils.data._utils import worker as _worker

from espalier.errors import UsageError

_MASK = (1 << 64) - 1
_END = object()
_TOLD_AFTER_S = 10  # that a stream is being counted


def mix(seed, number):
    """splitmix64 (Steele et al., 2014): seeds that have nothing to do with one another."""
    x = (seed + (number + 1) * 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def _seed_generators(seed):
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    numpy = _numpy()
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


@contextlib.contextmanager
def kept_generators():
    """What is seeded and drawn within leaves the program's own random numbers as they were."""
    of_torch, of_python = torch.default_generator.get_state(), random.getstate()
    numpy = _numpy()
    if numpy is not None:
        # Its state takes 0.1 ms to copy, so another generator stands in for it. This drops the second number of a pair
        # of normal draws, if the program has drawn only the first.
        of_numpy = numpy.random.get_bit_generator()
        numpy.random.set_bit_generator(_stand_in())
    try:
        yield
    finally:
        torch.default_generator.set_state(of_torch)
        random.setstate(of_python)
        if numpy is not None:
            numpy.random.set_bit_generator(of_numpy)


@functools.cache
def _stand_in():
    return _numpy().random.MT19937(0)


@functools.cache
def _numpy():
    try:
        import numpy
        return numpy
    except ImportError:
        return None


def reads_batches(dataset):
    """Whether the data set reads the samples of a batch at once. torch's Subset and StackDataset do if those that they
    are made of do, and have a `__getitems__` in either case."""
    at_once = getattr(type(dataset), "__getitems__", None)
    if at_once is Subset.__getitems__:
        return reads_batches(dataset.dataset)
    if at_once is StackDataset.__getitems__:
        parts = dataset.datasets
        return all(map(reads_batches, parts.values() if isinstance(parts, dict) else parts))
    return hasattr(dataset, "__getitems__")


class _InPlaceOf(Dataset):
    """In a worker the program finds its data set behind this one, reads what it has there and sets it."""

    _OWN = ("dataset",)

    def __init__(self, dataset):
        self.dataset = dataset

    def __getattr__(self, name):
        if name in self._OWN or name == "__getitems__":
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __setattr__(self, name, value):
        if name in self._OWN:
            super().__setattr__(name, value)
        else:
            setattr(self.dataset, name, value)


class SeededDataset(_InPlaceOf):
    """Seeds the random generators before each sample, so that augmentation depends on the trial, the epoch and the
    sample, and not on which replica or worker draws it."""

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, item):
        index, seed = item
        _seed_generators(seed)
        return self.dataset[index]


class EndWithParent:
    """A worker_init_fn: the worker ends when the process that reads its batches is gone. DataLoader's workers look for
    that only where they wait for orders: killed while they hand over large batches, a replica would leave them for ever."""

    _LOOK_S = 1.0

    def __init__(self, given):
        self._given = given

    def __call__(self, worker):
        threading.Thread(target=self._watch, args=(os.getppid(), multiprocessing.parent_process()), daemon=True).start()
        if self._given is not None:
            self._given(worker)

    def _watch(self, forked_by, parent):
        while os.getppid() == forked_by and parent.is_alive():
            threading.Event().wait(self._LOOK_S)
        os._exit(1)


class Slice(typing.NamedTuple):
    """Consecutive samples of one epoch's stream."""
    epoch: int        # from 0
    begin: int
    count: int
    seed: int | None  # the epoch's; None: generators are left alone


class StreamedDataset(_InPlaceOf):
    """Reads slices of an IterableDataset's streams: forwards if it can, from a newly opened stream if it has to go
    back. The reader of an epoch's last sample finds out whether there are more.

    Generators are seeded before each sample, those that are skipped too: a stream that shuffles by them is the same on
    each replica."""

    _OWN = ("dataset", "_size", "_stream", "_epoch", "_next")

    def __init__(self, dataset):
        super().__init__(dataset)
        self._size = None
        self._forget()

    def _forget(self):
        self._stream, self._epoch, self._next = None, None, 0

    def __getstate__(self):
        return self.dataset, self._size

    def __setstate__(self, state):
        self.dataset, self._size = state
        self._forget()

    def size(self, seed):
        """Samples of every epoch: what the data set says, or else how many its first epoch has."""
        if self._size is None:
            try:
                self._size = len(self.dataset)
            except (TypeError, NotImplementedError):
                self._size = self._counted(seed)
            if self._size < 1:
                raise UsageError("AdaptiveDataLoader: the data set is empty")
        return self._size

    def _counted(self, seed):
        with kept_generators():
            self._open(0, seed)
            told = time.monotonic()
            while self._read(seed) is not _END:
                if time.monotonic() > told + _TOLD_AFTER_S:
                    told = math.inf
                    print(f"espalier: counting the samples of the {type(self.dataset).__name__}'s first epoch, {self._next} so "
                          "far. A __len__ saves that; a stream without an end must be cut, as by itertools.islice",
                          file=sys.stderr, flush=True)
            count = self._next
            self._forget()
        return count

    def __getitems__(self, wanted):
        if self._stream is None or wanted.epoch != self._epoch or wanted.begin < self._next:
            self._open(wanted.epoch, wanted.seed)
        try:
            self._skip_to(wanted.begin, wanted.seed)
            samples = [self._read(wanted.seed) for _ in range(wanted.count)]
            if samples[-1] is _END:
                raise self._another_size(f"ends after {self._next} samples", wanted.epoch)
            if self._next == self._size and self._read(wanted.seed) is not _END:
                raise self._another_size(f"has more than {self._size} samples", wanted.epoch)
        except BaseException:
            self._forget()
            raise
        if self._next >= self._size:
            self._forget()
        return samples

    def _another_size(self, found, epoch):
        return UsageError(f"AdaptiveDataLoader: the stream of epoch {epoch + 1} {found}, and an epoch has "
                          f"{self._size}, as the data set's __len__ says or its first epoch had: want as many in "
                          "every epoch")

    def _open(self, epoch, seed):
        self._forget()
        if hasattr(self.dataset, "set_epoch"):
            self.dataset.set_epoch(epoch)
        with _undivided():
            if seed is not None:
                _seed_generators(mix(seed, -1))
            self._stream = iter(self.dataset)
        self._epoch = epoch

    def _skip_to(self, begin, seed):
        if begin > self._next and hasattr(self._stream, "skip"):
            self._stream.skip(begin - self._next)
            self._next = begin
        while self._next < begin and self._read(seed) is not _END:
            pass

    def _read(self, seed):
        if seed is not None:
            _seed_generators(mix(seed, self._next))
        with _undivided():
            sample = next(self._stream, _END)
        if sample is not _END:
            self._next += 1
        return sample


@contextlib.contextmanager
def _undivided():
    """Many a data set gives each of DataLoader's workers its part of the samples. Here it is the group that divides
    them, so the data set is to see no workers."""
    kept, _worker._worker_info = _worker._worker_info, None
    try:
        yield
    finally:
        _worker._worker_info = kept
