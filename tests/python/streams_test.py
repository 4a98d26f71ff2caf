"""Iterable data sets in loops of one replica without a tuner."""
import os
import pathlib
import random
import tempfile
import unittest

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import espalier
import espalier.torch as adl
from espalier.torch._datasets import Slice, StreamedDataset
from forked import alone, in_child
from small_program import data, net, values


class Rows(IterableDataset):
    """The data's rows with their numbers, in another order each epoch. It divides itself over workers, as torch's
    documentation advises, and draws from the global generators."""

    def __init__(self, size=103, sizes=()):
        self.size, self.sizes = size, sizes
        self.epoch = None

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        size = self.sizes[self.epoch] if self.sizes else self.size
        for n in range(first, size, step):
            yield (n + 17 * self.epoch) % size, random.random(), torch.rand(1).item()


class Measured(Rows):
    def __len__(self):
        return self.size


class Streams(unittest.TestCase):
    def read(self, dataset=None, workers=0, epochs=2, **options):
        loader = adl.AdaptiveDataLoader(dataset or Rows(), batch_size=10, num_workers=workers, **options)
        self.assertEqual(len(loader), 11)
        return [[row for batch in loader for row in zip(*(column.tolist() for column in batch))]
                for _ in adl.remaining_epochs_until(epochs)]

    @alone
    def test_each_epoch_is_its_stream_whoever_reads_it(self):
        epochs = in_child(self.read)
        for epoch, rows in enumerate(epochs):
            self.assertEqual([row[0] for row in rows], [(n + 17 * epoch) % 103 for n in range(103)])
        self.assertNotEqual([row[1:] for row in epochs[0]], [row[1:] for row in epochs[1]])
        for options in ({"dataset": Measured()}, {"workers": 2}, {"workers": 2, "persistent_workers": True},
                        {"workers": 2, "multiprocessing_context": "spawn"}):
            self.assertEqual(in_child(lambda options=options: self.read(**options)), epochs, options)

    @alone
    def test_drop_last_leaves_out_the_streams_end(self):
        loaders = [adl.AdaptiveDataLoader(Rows(), batch_size=10, num_workers=workers, drop_last=True) for workers in (2, 0)]
        for epoch in adl.remaining_epochs_until(2):
            for loader in loaders:
                self.assertEqual((len(loader), loader.samples), (10, 100))
                numbers = [number for batch in loader for number in batch[0].tolist()]
                self.assertEqual(numbers, [(n + 17 * epoch) % 103 for n in range(100)])

    @alone
    def test_a_plain_loop_over_the_stream_trains_the_same(self):
        x, y = data()

        class Pairs(IterableDataset):
            def __iter__(self):
                yield from zip(x, y)

        plain, model = net(), net()
        optimizer = torch.optim.SGD(plain.parameters(), 0.01)
        for _ in range(2):
            for inputs, targets in DataLoader(Pairs(), batch_size=32):
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(plain(inputs), targets).backward()
                optimizer.step()
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        parallel = adl.AdaptiveDataParallel(model, optimizer)
        loader = adl.AdaptiveDataLoader(Pairs(), batch_size=32)
        held_out = adl.AdaptiveDataLoader(Pairs(), batch_size=50, num_workers=2)
        for _ in adl.remaining_epochs_until(2):
            for inputs, targets in loader:
                torch.nn.functional.mse_loss(parallel(inputs), targets).backward()
                optimizer.step()
            self.assertTrue(torch.equal(torch.cat([inputs for inputs, _ in held_out]), x))
            self.assertTrue(torch.equal(torch.cat([inputs for inputs, _ in loader]), x), "read again in its epoch")
        self.assertTrue(torch.equal(values(plain), values(model)))

    @alone
    def test_resumed_from_a_checkpoint_it_goes_on_with_the_next_epochs_stream(self):
        def program(epochs):
            model = net(features=1)
            optimizer = torch.optim.SGD(model.parameters(), 0.01)
            parallel = adl.AdaptiveDataParallel(model, optimizer)
            loader = adl.AdaptiveDataLoader(Rows(), batch_size=10)
            seen = {}
            for epoch in adl.remaining_epochs_until(epochs):
                seen[epoch] = []
                for row in loader:
                    seen[epoch].append([column.tolist() for column in row])
                    parallel(row[2].float()[:, None]).sum().backward()
                    optimizer.step()
            espalier.trial().finish()
            return seen

        straight = in_child(lambda: program(3))
        with tempfile.TemporaryDirectory() as folder:
            os.environ["ESPALIER_CHECKPOINT_DIR"] = folder
            first = in_child(lambda: program(1))
            os.environ["ESPALIER_CHECKPOINT"] = str(next(pathlib.Path(folder).glob("*.pt")))
            self.assertEqual(first | in_child(lambda: program(3)), straight)
        self.assertEqual(list(first), [0])

    @alone
    def test_an_iterator_that_can_skip_is_asked_to(self):
        asked = []

        class Iterator:
            def __init__(self):
                self.at = 0

            def __next__(self):
                if self.at == 40:
                    raise StopIteration
                self.at += 1
                return self.at - 1

            def skip(self, count):
                asked.append(count)
                self.at += count

        class Skipping(IterableDataset):
            def __iter__(self):
                return Iterator()

            def __len__(self):
                return 40

        streamed = StreamedDataset(Skipping())
        streamed.size(None)
        self.assertEqual(streamed.__getitems__(Slice(0, 10, 3, None)), [10, 11, 12])
        self.assertEqual(streamed.__getitems__(Slice(0, 13, 1, None)), [13])
        self.assertEqual(streamed.__getitems__(Slice(0, 20, 2, None)), [20, 21])
        self.assertEqual(streamed.__getitems__(Slice(0, 5, 1, None)), [5], "by a new one")
        self.assertEqual(streamed.__getitems__(Slice(1, 38, 2, None)), [38, 39])
        self.assertEqual(asked, [10, 6, 5, 38])

    @alone
    def test_streams_of_other_sizes_are_refused(self):
        for size, told in ((102, "ends after 102 samples"), (104, "has more than 103 samples")):
            for workers in (0, 2):
                def fails():
                    with self.assertRaisesRegex(espalier.UsageError, f"stream of epoch 2 {told}.*has 103"):
                        self.read(Rows(sizes=(103, size)), workers)
                    return True
                self.assertTrue(in_child(fails), (size, workers))
        with self.assertRaisesRegex(espalier.UsageError, "shuffle=True"):
            adl.AdaptiveDataLoader(Rows(), shuffle=True)
        with self.assertRaisesRegex(espalier.UsageError, "empty"):
            len(adl.AdaptiveDataLoader(Rows(0)))


if __name__ == "__main__":
    unittest.main()
