"""What reading leaves of the program's random generators, models and data sets, on one replica without a tuner."""
import random
import unittest

import numpy
import torch
from torch.utils.data import Dataset, IterableDataset, StackDataset, Subset, TensorDataset

import espalier
import espalier.torch as adl
from espalier.torch._datasets import reads_batches
from forked import alone, in_child
from small_program import make, mse, train


class Drawn(Dataset):
    """Each sample is what the three generators give, and a read of it moves them all."""

    def __init__(self, size=32):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if index >= self.size:
            raise IndexError(index)
        return torch.rand(1).item(), random.random(), numpy.random.standard_normal()


class Stream(IterableDataset):
    def __iter__(self):
        for _ in range(32):
            yield Drawn()[0]


def own_states():
    kind, key, *rest = numpy.random.get_state()
    return random.getstate(), (kind, key.tolist(), *rest)


class Generators(unittest.TestCase):
    @alone
    def test_reading_leaves_the_programs_own_as_they_were(self):
        def reads(dataset, workers):
            loader = adl.AdaptiveDataLoader(dataset, batch_size=8, num_workers=workers, training=True)
            held_out = adl.AdaptiveDataLoader(dataset, batch_size=8, num_workers=workers)
            random.seed(1)
            numpy.random.seed(1)
            for _ in adl.remaining_epochs_until(2):
                for over in (loader, held_out, loader):
                    own, batches = own_states(), 0
                    for _ in over:
                        self.assertEqual(own_states(), own)
                        random.random()
                        numpy.random.rand()
                        own, batches = own_states(), batches + 1
                    self.assertEqual(own_states(), own)
                    self.assertEqual(batches, 4)
            return True

        for dataset in (Drawn(), Stream()):
            for workers in (0, 1):
                self.assertTrue(in_child(lambda: reads(dataset, workers)), (dataset, workers))

    @alone
    def test_they_are_left_where_reading_fails(self):
        class Fails(Drawn):
            def __getitem__(self, index):
                super().__getitem__(index)
                raise KeyError(index)

        loader = adl.AdaptiveDataLoader(Fails(), batch_size=8)
        random.seed(1)
        numpy.random.seed(1)
        own = own_states()
        for _ in adl.remaining_epochs_until(1):
            with self.assertRaises(KeyError):
                next(iter(loader))
            self.assertEqual(own_states(), own)

    @alone
    def test_passes_with_dropout_differ_and_depend_on_no_workers(self):
        def passes(workers):
            def call():
                dropout = torch.nn.Dropout(0.5)
                loader = adl.AdaptiveDataLoader(TensorDataset(torch.ones(64, 1)), batch_size=16, num_workers=workers)
                held_out = adl.AdaptiveDataLoader(TensorDataset(torch.ones(64, 1)), batch_size=16, num_workers=workers)
                taken = []
                for _ in adl.remaining_epochs_until(2):
                    for over in (loader, held_out, held_out):
                        taken.append([value for x, in over for value in dropout(x)[:, 0].tolist()])
                return taken
            return in_child(call)

        by_this_process = passes(0)
        self.assertEqual(len({tuple(taken) for taken in by_this_process}), len(by_this_process))
        self.assertEqual(by_this_process, passes(2))


class Seeds(unittest.TestCase):
    @alone
    def test_a_part_of_a_data_set_is_read_as_the_whole(self):
        def read(dataset, workers):
            def call():
                loader = adl.AdaptiveDataLoader(dataset, batch_size=8, num_workers=workers)
                return [[column.tolist() for column in batch] for _ in adl.remaining_epochs_until(2) for batch in loader]
            return in_child(call)

        whole = read(Drawn(), 0)
        split, _ = torch.utils.data.random_split(Drawn(), [32, 0])
        for dataset in (split, Subset(split, range(32))):
            for workers in (0, 2):
                self.assertEqual(read(dataset, workers), whole, (dataset, workers))

    def test_which_data_sets_read_batches(self):
        class AtOnce(Drawn):
            def __getitems__(self, indices):
                return [self[index] for index in indices]

        class OwnSubset(Subset):
            def __getitems__(self, indices):
                return [self.dataset[self.indices[index]] for index in indices]

        one, at_once = Drawn(), AtOnce()
        for dataset in (one, Subset(one, [0]), Subset(Subset(one, [0]), [0]), StackDataset(one, one),
                        StackDataset(a=at_once, b=Subset(one, range(32)))):
            self.assertFalse(reads_batches(dataset), dataset)
        for dataset in (at_once, Subset(at_once, [0]), OwnSubset(one, [0]), StackDataset(at_once, at_once),
                        StackDataset(a=at_once, b=Subset(at_once, range(32)))):
            self.assertTrue(reads_batches(dataset), dataset)


class Refused(unittest.TestCase):
    @alone
    def test_a_training_data_set_of_another_length(self):
        for size in (64, 24):
            for options in ({}, {"num_workers": 2}, {"shuffle": True, "drop_last": True}):
                def fails(size=size, options=options):
                    dataset = Drawn()
                    loader = adl.AdaptiveDataLoader(dataset, batch_size=8, **options)
                    with self.assertRaisesRegex(espalier.UsageError, f"has {size} samples, and had 32 when training began"):
                        for epoch in adl.remaining_epochs_until(2):
                            self.assertEqual(sum(len(batch[0]) for batch in loader), 32)
                            dataset.size = size
                    return epoch
                self.assertEqual(in_child(fails), 1, (size, options))

    @alone
    def test_other_data_sets_may_change_their_length(self):
        adl.AdaptiveDataLoader(Drawn(), batch_size=8, training=True)
        dataset = Drawn()
        loader = adl.AdaptiveDataLoader(dataset, batch_size=8)
        for _ in adl.remaining_epochs_until(3):
            self.assertEqual(sum(len(batch[0]) for batch in loader), dataset.size)
            dataset.size += 3

    @alone
    def test_a_loop_within_another_one(self):
        loader = adl.AdaptiveDataLoader(Drawn(), batch_size=8, training=True)
        held_out = adl.AdaptiveDataLoader(Drawn(24), batch_size=8)
        for _ in adl.remaining_epochs_until(1):
            for _ in loader:
                with self.assertRaisesRegex(RuntimeError, "overlapping dataloader iterations detected: .* of 24 samples "
                                            "begins while one over the training loader is under way.*"
                                            r"adl.evaluate\(fn, dataset, batch_size\)"):
                    next(iter(held_out))
                self.assertEqual(adl.evaluate(lambda i: {"n": len(i)}, held_out.dataset, 8), {"n": 24})
            held = iter(held_out)
            next(held)
            with self.assertRaisesRegex(RuntimeError, r"over a loader of 24 samples is under way.*close\(\)"):
                next(iter(held_out))
            held.close()
            self.assertEqual(sum(len(batch[0]) for batch in held_out), 24)


class Modes(unittest.TestCase):
    @alone
    def test_evaluate_leaves_each_module_its_own(self):
        frozen = torch.nn.BatchNorm1d(6)
        shared = torch.nn.Linear(6, 6)
        model, optimizer, parallel, loader = make(torch.nn.Sequential(
            frozen, torch.nn.Sequential(shared), torch.nn.Sequential(shared), torch.nn.Linear(6, 1)))
        model[2].eval()
        shared.train()
        frozen.eval()
        before = [module.training for module in model.modules()]
        seen = []

        def note(indices):
            seen.extend(module.training for module in model.modules())
            return {"n": len(indices)}

        for _ in adl.remaining_epochs_until(2):
            for x, y in loader:
                mse(parallel(x), y).backward()
                optimizer.step()
            adl.evaluate(note, 20, 20)
            self.assertEqual([module.training for module in model.modules()], before)
        self.assertFalse(any(seen))
        self.assertEqual(frozen.running_mean.abs().sum(), 0)

    @alone
    def test_evaluate_restores_by_the_modules_own_train(self):
        class Counts(torch.nn.Linear):
            calls = ()

            def train(self, mode=True):
                self.calls += (mode,)
                return super().train(mode)

        model, optimizer, parallel, loader = make(torch.nn.Sequential(Counts(6, 1)))
        train(optimizer, parallel, loader)
        adl.evaluate(lambda i: {"n": len(i)}, 20, 20)
        self.assertEqual(model[0].calls[-2:], (False, True))


if __name__ == "__main__":
    unittest.main()
