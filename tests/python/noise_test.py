"""The noise of gradients is measured before the program changes them between backward and step: in steps of one batch,
which are compared with the step before, and in those of several."""
import os
import pathlib
import sys
import unittest

import torch

import espalier.torch as adl
from espalier import testing
from forked import alone, in_child
from small_program import make, mse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import BIN  # noqa: E402


def leave(_model):
    """As plain loops do."""


def touch(model):
    """Changes in place without a difference. The first step of a program is found to be changed by the second, and
    compared with none."""
    for p in model.parameters():
        p.grad.mul_(1.0)


def clip_norm(model):
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)


def clip_values(model):
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.01)


def replace(model):
    for p in model.parameters():
        p.grad = p.grad * 0.01


def still(parameters):
    """Nothing is learnt, so that all programs have the same gradients."""
    return torch.optim.SGD(parameters, 0.0)


class OwnSteps(torch.optim.SGD):
    """Works on the gradients themselves, as some optimizers do."""

    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            for p in group["params"]:
                p.grad.add_(p, alpha=10.0)


class Noise(unittest.TestCase):
    def measured(self, change, batches, optimizer=still, scaler=None):
        """What is known of |gradient|^2 and of a gradient's variance after some steps of so many batches."""
        model, own, parallel, loader = make(
            optimizer=optimizer, loader={} if batches == 1 else {"local_bsz_bounds": (None, 20 // batches)})
        for _ in adl.remaining_epochs_until(3):
            for x, y in loader:
                loss = mse(parallel(x), y)
                (loss if scaler is None else scaler.scale(loss)).backward()
                if model[0].weight.grad is not None:  # of the step's last batch
                    if scaler is not None:
                        scaler.unscale_(own)
                    change(model)
                if scaler is None:
                    own.step()
                else:
                    scaler.step(own)
                    scaler.update()
        self.assertEqual(parallel.steps, 30)
        noise = torch.tensor([parallel.gns.sqr_avg(), parallel.gns.var_avg()], dtype=torch.double)
        self.assertTrue((noise > 0).all(), noise)
        return noise

    def expect_the_same(self, batches, others, like=touch):
        """Each in a process of its own, since a process is one trial."""
        expected = self.in_a_process(like, batches)
        for name, (change, options) in others.items():
            with self.subTest(name, batches=batches):
                torch.testing.assert_close(self.in_a_process(change, batches, **options), expected, rtol=1e-4, atol=0)

    def in_a_process(self, *arguments, **options):
        return torch.tensor(in_child(lambda: self.measured(*arguments, **options).tolist()), dtype=torch.double)

    OTHERS = {"norms": (clip_norm, {}), "values": (clip_values, {})}

    @alone
    def test_of_steps_that_are_compared_with_the_one_before(self):
        self.expect_the_same(1, self.OTHERS | {"by the optimizer": (leave, {"optimizer": lambda p: OwnSteps(p, 0.0)})})
        self.expect_the_same(1, {"other tensors": (replace, {})}, like=leave)
        torch.testing.assert_close(self.in_a_process(touch, 1), self.in_a_process(leave, 1), rtol=0.2, atol=0)

    @alone
    def test_of_steps_of_several_batches(self):
        self.expect_the_same(2, self.OTHERS | {"other tensors": (replace, {})}, like=leave)

    @alone
    def test_whatever_the_loss_is_scaled_by(self):
        for batches in (1, 2):
            others = {}
            for name, change in ("unscaled", leave), ("clipped as well", clip_norm):
                # Grown by half every few steps: each is compared with one of another scale.
                others[name] = change, {"scaler": torch.amp.GradScaler("cpu", init_scale=64.0, growth_factor=1.5,
                                                                       growth_interval=4)}
            self.expect_the_same(batches, others)


class OfTwoReplicas(unittest.TestCase):
    """What replicas compare has the noise in it, which a joining one is given, and goes on to measure as the others do."""

    def test_is_the_same_where_one_joins_whose_gradients_adam_scales(self):
        before = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", before)
        os.environ["PATH"] = f"{BIN}{os.pathsep}{before}"
        parameters = {"adam": True, "models": 2, "epochs": 0, "samples": 320, "lr": 0.001, "compute_ms": 1}
        with testing.start([sys.executable, ROOT / "tests/python/elastic_probe.py"], parameters, slots=(1, 2),
                           max_restarts=0) as trial:
            trial.wait_for_step(2)
            for _ in range(2):
                step = trial.resize(2)["step"]
                trial.wait_for_step(step + 2)
                step = trial.resize(1)["step"]
                trial.wait_for_step(step + 2)


if __name__ == "__main__":
    unittest.main()
