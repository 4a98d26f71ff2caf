"""zero_grad between two backward passes of a batch, and gradients that no optimizer has, beside plain PyTorch."""
import os
import unittest
import warnings

import torch
import torch.nn.functional as F
from torch.utils.data import TensorDataset

import espalier
import espalier.torch as adl
import zeroed
from beside_plain import BesidePlainLoops
from forked import alone
from small_program import data, make, mse, net, plain_batches, values


class Zeroed(BesidePlainLoops):
    def check(self, replicas, most, ways):
        def as_plain(way, came_to):
            for got in came_to:
                torch.testing.assert_close(got, zeroed.plain(way), rtol=0, atol=1e-5)
        self.train("zeroed.py", replicas, most, ways, as_plain)

    def test_on_one_replica(self):
        self.check(1, 0, zeroed.WAYS)

    def test_on_one_replica_with_batches_in_pieces(self):
        self.check(1, 4, zeroed.CUT)

    def test_on_two_replicas(self):
        self.check(2, 0, zeroed.WAYS)

    def test_on_two_replicas_with_batches_in_pieces(self):
        self.check(2, 2, zeroed.CUT)


class ZeroedLate(unittest.TestCase):
    def train(self, zero):
        model, optimizer, parallel, loader = make(loader={"local_bsz_bounds": (None, 5)})
        for _ in adl.remaining_epochs_until(1):
            for i, (x, y) in enumerate(loader):
                mse(parallel(x), y).backward()
                zero(model, optimizer, i)
                mse(parallel(x), y).backward()
                optimizer.step()

    @alone
    def test_what_is_added_up_already_cannot_be_told_apart(self):
        with self.assertRaisesRegex(espalier.UsageError, "for the first time and not in the first batch of its step"):
            self.train(lambda model, optimizer, i: optimizer.zero_grad() if i == 1 else None)

    @alone
    def test_gradients_set_to_none_in_a_batch_in_pieces(self):
        with self.assertRaisesRegex(RuntimeError, r'parameter "\d.\w+" was set to None .* want zero_grad\(\)'):
            self.train(lambda model, optimizer, i: model.zero_grad())


class InNoOptimizer(unittest.TestCase):
    @alone
    def test_parameters_keep_no_gradients_and_are_told_of_once(self):
        x, y = data()
        plain = net()
        plain_optimizer = torch.optim.SGD(plain[2].parameters(), 0.05)
        for _ in range(2):
            for inputs, targets in plain_batches(x, y, 20):
                plain.zero_grad()
                mse(plain(inputs), targets).backward()
                torch.nn.utils.clip_grad_norm_(plain[2].parameters(), 0.5)
                plain_optimizer.step()
        model = net()
        optimizer = torch.optim.SGD(model[2].parameters(), 0.05)
        parallel = adl.AdaptiveDataParallel(model, optimizer)
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            for _ in adl.remaining_epochs_until(2):
                for inputs, targets in loader:
                    inputs.requires_grad_()
                    loss = mse(parallel(inputs), targets)
                    (asked,) = torch.autograd.grad(loss, model[0].weight, retain_graph=True)
                    self.assertGreater(asked.abs().sum(), 0)
                    loss.backward()
                    self.assertGreater(inputs.grad.abs().sum(), 0)
                    self.assertIsNone(model[0].weight.grad)
                    torch.nn.utils.clip_grad_norm_(parallel.parameters(), 0.5)
                    optimizer.step()
        told = [str(each.message) for each in warned if "in no optimizer" in str(each.message)]
        self.assertEqual(len(told), 1, warned)
        self.assertIn('in no optimizer: "0.weight", "0.bias". Their .grad stays None', told[0])
        torch.testing.assert_close(values(model), values(plain), rtol=1e-5, atol=1e-6)

    @alone
    def test_what_another_model_trains_is_trained(self):
        shared, head = net(), torch.nn.Linear(1, 1)
        first = torch.optim.SGD(shared.parameters(), 0.01)
        second = torch.optim.SGD(head.parameters(), 0.01)
        adl.AdaptiveDataParallel(shared, first, name="shared")
        whole = adl.AdaptiveDataParallel(torch.nn.Sequential(shared, head), second, name="head")
        loader = adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=20)
        before = values(shared)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in adl.remaining_epochs_until(1):
                for x, y in loader:
                    whole.zero_grad()
                    mse(whole(x), y).backward()
                    first.step()
                    second.step()
        self.assertFalse(torch.equal(before, values(shared)))


class BetweenSteps(unittest.TestCase):
    @alone
    def test_backward_between_the_steps_of_one_model(self):
        model = net()
        first, second = (torch.optim.SGD(layer.parameters(), 0.01) for layer in (model[0], model[2]))
        parallel = adl.AdaptiveDataParallel(model, [first, second])
        loader = adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=20)
        with self.assertRaisesRegex(espalier.UsageError, r"backward\(\) after the step\(\) of optimizer 0 of the model"):
            for _ in adl.remaining_epochs_until(1):
                for x, y in loader:
                    mse(parallel(x), y).backward()
                    first.step()
                    F.l1_loss(parallel(x), y).backward()
                    second.step()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
