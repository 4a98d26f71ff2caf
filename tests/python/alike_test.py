"""Replicas that must not part: gradients that come twice, steps that one of them leaves out, hooks, and what is drawn."""
import unittest

import torch

import alike
import espalier
import espalier.torch as adl
from beside_plain import BesidePlainLoops
from forked import alone
from small_program import make, mse


class Alike(BesidePlainLoops):
    def check(self, replicas, most, ways):
        def alike_and_as_plain(way, came_to):
            for other in came_to[1:]:
                torch.testing.assert_close(other, came_to[0], rtol=0, atol=0)
            if way not in alike.DRAWN:
                torch.testing.assert_close(came_to[0], alike.plain(way), rtol=0, atol=1e-5)
        self.train("alike.py", replicas, most, ways, alike_and_as_plain)

    def test_on_one_replica(self):
        self.check(1, 0, alike.SAME_AS_PLAIN)

    def test_on_one_replica_with_batches_in_pieces(self):
        self.check(1, 4, alike.AGAIN + alike.LEFT_OUT + alike.LEFT_OUT_LATE + tuple(set(alike.HOOKS) - {"scaled_twice"}))

    def test_on_two_replicas(self):
        self.check(2, 0, alike.ALL)

    def test_on_two_replicas_with_batches_in_pieces(self):
        self.check(2, 2, alike.AGAIN + alike.LEFT_OUT + alike.LEFT_OUT_LATE + tuple(set(alike.HOOKS) - {"scaled_twice"}) +
                   alike.DRAWN_IN_PIECES)


class RefusedAtOnce(unittest.TestCase):
    """On one replica, before there is another."""

    def train(self, backward):
        model, optimizer, parallel, loader = make()
        for _ in adl.remaining_epochs_until(1):
            for x, y in loader:
                backward(model, mse(parallel(x), y))
                optimizer.step()

    @alone
    def test_a_graph_of_gradients(self):
        with self.assertRaisesRegex(Exception, r'backward\(create_graph=True\) gave parameter "2\.\w+" a gradient with a graph'):
            self.train(lambda model, loss: loss.backward(create_graph=True))

    @alone
    def test_hooks_of_several_passes_of_a_batch_in_pieces(self):
        model, optimizer, parallel, loader = make(loader={"local_bsz_bounds": (None, 5)})
        model[0].weight.register_hook(lambda gradient: gradient.clamp(-0.1, 0.1))
        with self.assertRaisesRegex(Exception, "a batch has several backward passes, and comes in several pieces"):
            for _ in adl.epochs(1):
                for x, y in loader:
                    for _ in range(2):
                        mse(parallel(x), y).backward()
                    optimizer.step()

    @alone
    def test_but_not_what_is_differentiated_twice_before(self):
        def backward(model, loss):
            gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
            (loss + sum(g.pow(2).sum() for g in gradients)).backward()
        self.train(backward)

    @alone
    def test_hooks_of_gradients_that_are_added_up_also_after_the_wrap(self):
        model, optimizer, parallel, loader = make()
        model[0].weight.register_post_accumulate_grad_hook(lambda p: None)
        with self.assertRaisesRegex(espalier.UsageError, r'"0.weight" has a hook by register_post_accumulate_grad_hook'):
            next(iter(adl.epochs(1)))


if __name__ == "__main__":
    unittest.main()
