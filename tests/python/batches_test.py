"""A global batch that the program sets between epochs: steps, rates, checkpoints, and what is refused. One replica without a
tuner; tests/python/integrations has several."""
import os
import unittest

import torch
from torch.utils.data import IterableDataset, TensorDataset

import espalier
import espalier.torch as adl
from forked import alone, resumed
from small_program import data, make, mse, net, plain_batches, sgd, values

SIZES = (20, 50, 10, 100)  # of the epochs of 200 samples


def plain(sizes, rate=lambda size: 0.01):
    model, (x, y) = net(), data()
    optimizer = sgd(model.parameters())
    for size in sizes:
        optimizer.param_groups[0]["lr"] = rate(size)
        for inputs, targets in plain_batches(x, y, size):
            optimizer.zero_grad()
            mse(model(inputs), targets).backward()
            optimizer.step()
    return values(model)


class Steps(unittest.TestCase):
    def trained(self, at="start", sizes=SIZES, epochs=None, loader=None, **options):
        """Sets the size of each epoch where it begins, or where the one before ends."""
        self.counts, self.lengths = [], []
        model, optimizer, parallel, loader = make(loader=loader, **options)
        for epoch in adl.remaining_epochs_until(epochs or len(sizes)):
            if at == "start":
                loader.set_batch_size(sizes[epoch])
            self.assertEqual((loader.batch_size, loader.next_batch_size), (sizes[epoch], sizes[epoch]))
            self.lengths.append(len(loader))
            self.counts.append(0)
            for x, y in loader:
                self.assertEqual(loader.current_batch_size, sizes[epoch])
                mse(parallel(x), y).backward()
                optimizer.step()
                self.counts[-1] += not loader.accumulating()
            if at == "end" and epoch + 1 < len(sizes):
                loader.set_batch_size(sizes[epoch + 1])
                self.assertEqual((loader.batch_size, loader.next_batch_size), (sizes[epoch], sizes[epoch + 1]))
        self.parallel = parallel
        return values(model)

    def compare(self, *arguments, rate=lambda size: 0.01, **options):
        torch.testing.assert_close(self.trained(*arguments, **options), plain(SIZES, rate), rtol=1e-5, atol=1e-6)
        self.assertEqual((self.counts, self.lengths), ([10, 4, 20, 2], [10, 4, 20, 2]))

    @alone
    def test_where_an_epoch_begins(self):
        self.compare("start")
        self.assertEqual((self.parallel.steps, self.parallel.progress), (36, 36))

    @alone
    def test_where_an_epoch_ends(self):
        self.compare("end")

    @alone
    def test_whatever_the_rule_the_rate_stays(self):
        self.compare("start", scaling_rule="linear")

    @alone
    def test_the_rate_is_that_of_the_batch_that_is_named(self):
        self.compare("end", scaling_rule="linear", base_batch_size=20, rate=lambda size: 0.01 * size / 20)

    @alone
    def test_with_several_batches_a_step_and_workers(self):
        self.compare("start", loader={"local_bsz_bounds": (None, 20), "num_workers": 1})

    @alone
    def test_set_back_before_the_epoch(self):
        sizes = (20, 20)
        _, _, _, loader = make()
        for epoch in adl.remaining_epochs_until(2):
            self.assertEqual((len(list(loader)), loader.next_batch_size), (10, sizes[epoch]))
            loader.set_batch_size(50)
            loader.set_batch_size(20)

    @alone
    def test_set_before_training(self):
        _, _, _, loader = make()
        loader.set_batch_size(40)
        for _ in adl.remaining_epochs_until(1):
            self.assertEqual((len(list(loader)), loader.batch_size), (5, 40))

    @alone
    def test_an_epoch_that_is_left_early(self):
        _, optimizer, parallel, loader = make()
        steps = []
        for _ in adl.remaining_epochs_until(2):
            for x, y in loader:
                mse(parallel(x), y).backward()
                optimizer.step()
                if parallel.steps == 3:
                    break
            loader.set_batch_size(100)
            steps.append(parallel.steps)
        self.assertEqual(steps, [3, 5])

    @alone
    def test_a_stream(self):
        class Numbers(IterableDataset):
            def __len__(self):
                return 40

            def __iter__(self):
                return iter(torch.arange(40))

        loader = adl.AdaptiveDataLoader(Numbers(), batch_size=10)
        seen = []
        for epoch in adl.remaining_epochs_until(3):
            loader.set_batch_size((10, 20, 8)[epoch])
            seen.append([len(batch) for batch in loader])
        self.assertEqual(seen, [[10] * 4, [20] * 2, [8] * 5])

    def goes_on(self, at, sizes=(20, 50, 50, 50)):
        def program(epochs):
            trained = self.trained(at, sizes, epochs)
            espalier.trial().finish()
            return trained, self.counts

        (parameters, counts), _ = resumed(program, 2, 4)
        self.assertEqual(counts, [4, 4])
        torch.testing.assert_close(parameters, plain(sizes), rtol=1e-5, atol=1e-6)

    @alone
    def test_a_checkpoint_of_an_epoch_that_set_it(self):
        self.goes_on("start")

    @alone
    def test_a_checkpoint_of_its_end(self):
        self.goes_on("end")

    @alone
    def test_another_batch_of_the_loader_counts_again(self):
        """Programs are changed before a trial goes on."""
        def program(epochs):
            loader = adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=20 if epochs == 2 else 25)
            counts = []
            for epoch in adl.remaining_epochs_until(epochs):
                if epoch == 0:
                    loader.set_batch_size(50)
                counts.append(len(list(loader)))
            espalier.trial().finish()
            return counts

        counts, _ = resumed(program, 2, 4)
        self.assertEqual(counts, [8, 8])


class Refused(unittest.TestCase):
    def refused(self, size, wanted, loader=None, within=False, other=False):
        _, _, _, made = make(loader={"training": True, **(loader or {})})
        held_out = adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=10)
        for _ in adl.remaining_epochs_until(1):
            for _ in made if within else range(1):
                with self.assertRaisesRegex(espalier.UsageError, wanted):
                    (held_out if other else made).set_batch_size(size)
                self.assertEqual(made.next_batch_size, 20)
            break

    @alone
    def test_within_the_loop(self):
        self.refused(40, r"set_batch_size\(40\): its loop is under way", within=True)

    @alone
    def test_what_is_no_positive_whole_number(self):
        for size in (0, -20, 20.0, "20", True, None):
            with self.assertRaisesRegex(espalier.UsageError, f"batch_size is {size!r}: want a positive whole number"):
                make()[3].set_batch_size(size) if size == 0 else adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=size)

    @alone
    def test_more_than_an_epoch(self):
        self.refused(201, "an epoch has 200 samples")

    @alone
    def test_a_loader_that_drops_its_last_samples(self):
        self.refused(30, "drop_last=True", loader={"drop_last": True})

    @alone
    def test_a_loader_that_evaluates(self):
        self.refused(20, "this is not the training loader", other=True)

    @alone
    def test_a_forward_pass_that_must_be_whole(self):
        self.refused(40, "max_atomic_batch_size is 20 and accumulation is off",
                     loader={"local_bsz_bounds": (None, 20), "gradient_accumulation": False})

    @alone
    def test_a_batch_that_the_trial_chooses(self):
        _, _, _, loader = make()
        loader.autoscale_batch_size(100)
        with self.assertRaisesRegex(espalier.UsageError, "autoscale_batch_size lets the trial choose it"):
            loader.set_batch_size(40)

    @alone
    def test_an_adaptive_study(self):
        os.environ["ESPALIER_BATCH_MODE"] = "adaptive"
        self.refused(40, "the batch size was set to 40 after training began, and the study's batch is adaptive")


if __name__ == "__main__":
    unittest.main()
