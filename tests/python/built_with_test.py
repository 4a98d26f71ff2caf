"""A trial that begins with another trial's checkpoint has its own options: the rate is what its own schedule would have made
of it, and of a group what the groups' proportion says."""
import collections
import pathlib
import sys
import unittest

import torch
from torch.optim import lr_scheduler as schedules

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from espalier.torch import _built_with  # noqa: E402
from espalier.torch._module_state import load_exactly  # noqa: E402

STEPS = 7  # before the checkpoint
MORE = 9


def step_after_steps(optimizer, gamma=0.5):
    return schedules.StepLR(optimizer, 3, gamma)


def warm_up_and_cosine(optimizer):
    warm_up = schedules.LinearLR(optimizer, 0.1, total_iters=4)
    return schedules.SequentialLR(optimizer, [warm_up, schedules.CosineAnnealingLR(optimizer, 12)], [4])


class Program:
    def __init__(self, make, rate=0.1, **more):
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
        self.optimizer = torch.optim.SGD([{"params": self.layers[0].parameters()},
                                          {"params": self.layers[1].parameters(), "lr": 10 * rate}],
                                         lr=rate, **{"momentum": 0.9, **more})
        self.schedule = make(self.optimizer)
        self.options = _built_with.options(self.optimizer)
        self.built = _built_with.schedule(self.schedule)

    def train(self, steps):
        rates = []
        for step in range(steps):
            self.layers(torch.ones(4, 3)).mean().backward()
            self.optimizer.step()
            metric = (1.0,) if isinstance(self.schedule, schedules.ReduceLROnPlateau) else ()
            self.schedule.step(*metric)
            rates.append([group["lr"] for group in self.optimizer.param_groups])
        return rates

    def go_on_from(self, other):
        self.layers.load_state_dict(other.layers.state_dict())
        load_exactly(self.optimizer, other.optimizer.state_dict())
        self.schedule.load_state_dict(other.schedule.state_dict())
        factors = _built_with.merge_groups(other.options, self.options, self.optimizer)
        self.schedule.load_state_dict(
            _built_with.merged_schedule(other.built, self.built, self.schedule.state_dict(), factors))


MAKES = {
    "step": step_after_steps,
    "milestones": lambda o: schedules.MultiStepLR(o, [2, 5, 9], 0.3),
    "exponential": lambda o: schedules.ExponentialLR(o, 0.9),
    "polynomial": lambda o: schedules.PolynomialLR(o, 30, 2.0),
    "cosine": lambda o: schedules.CosineAnnealingLR(o, 20),
    "warm restarts": lambda o: schedules.CosineAnnealingWarmRestarts(o, 5),
    "lambda from nothing": lambda o: schedules.LambdaLR(o, lambda step: min(1.0, step / 10)),
    "two, one after another": warm_up_and_cosine,
    "plateau": lambda o: schedules.ReduceLROnPlateau(o, patience=2),
}


class BuiltWith(unittest.TestCase):
    def check(self, parent, clone, fresh):
        """`fresh`, which has the clone's options, trained as many steps."""
        parent.train(STEPS)
        fresh.train(STEPS)
        clone.go_on_from(parent)
        of_fresh, of_clone = ({key: value for key, value in group.items() if key != "params"}
                              for group in (fresh.optimizer.param_groups[1], clone.optimizer.param_groups[1]))
        self.assertEqual(of_fresh.keys(), of_clone.keys())
        for key, value in of_fresh.items():
            if isinstance(value, float):
                self.assertAlmostEqual(of_clone[key], value, delta=1e-12 * abs(value), msg=key)
            else:
                self.assertEqual(of_clone[key], value, key)
        for ours, theirs in zip(clone.train(MORE), fresh.train(MORE)):
            for a, b in zip(ours, theirs):
                self.assertAlmostEqual(a, b, delta=1e-9 * abs(b))

    def test_another_rate_goes_through_the_schedule(self):
        for name, make in MAKES.items():
            with self.subTest(name):
                self.check(Program(make, 0.1), Program(make, 0.03), Program(make, 0.03))

    def test_one_cycle_has_its_own_peak(self):
        def of(peak):
            return lambda o: schedules.OneCycleLR(o, [peak, 10 * peak], total_steps=30)
        self.check(Program(of(0.5)), Program(of(0.2)), Program(of(0.2)))

    def test_other_options_are_the_programs_own(self):
        more = {"momentum": 0.5, "weight_decay": 1e-3}
        self.check(Program(step_after_steps), Program(step_after_steps, **more), Program(step_after_steps, **more))

    def test_a_schedules_own_options_too(self):
        def other(optimizer):
            return step_after_steps(optimizer, 0.9)
        parent, clone = Program(step_after_steps), Program(other)
        parent.train(STEPS)
        clone.go_on_from(parent)
        before = clone.optimizer.param_groups[0]["lr"]
        self.assertAlmostEqual(before, 0.1 * 0.5**2)  # what has been stays
        self.assertAlmostEqual(clone.train(2)[-1][0], before * 0.9)

    def test_what_training_has_made_of_options_stays(self):
        parent, clone = Program(step_after_steps), Program(step_after_steps)
        parent.train(STEPS)
        parent.optimizer.param_groups[0].update(lr=0.007, momentum=0.4)
        clone.go_on_from(parent)
        self.assertEqual((clone.optimizer.param_groups[0]["lr"], clone.optimizer.param_groups[0]["momentum"]), (0.007, 0.4))

    def test_a_rate_that_is_a_tensor(self):
        parent, clone = (torch.optim.Adam(torch.nn.Linear(2, 1).parameters(), lr=torch.tensor(rate)) for rate in (0.1, 0.02))
        then, now = _built_with.options(parent), _built_with.options(clone)
        parent.param_groups[0]["lr"].mul_(0.5)
        load_exactly(clone, parent.state_dict())
        _built_with.merge_groups(then, now, clone)
        self.assertAlmostEqual(float(clone.param_groups[0]["lr"]), 0.01, places=6)
        self.assertAlmostEqual(float(parent.param_groups[0]["lr"]), 0.05, places=6)

    def test_options_stay_what_they_were_whatever_holds_them(self):
        Pair = collections.namedtuple("Pair", "rates name")
        optimizer = torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), lr=0.1)
        optimizer.param_groups[0]["pair"] = Pair([torch.tensor(0.5)], "a")
        then = _built_with.options(optimizer)
        optimizer.param_groups[0]["pair"].rates[0].mul_(2)
        self.assertEqual(then[0]["pair"], Pair([torch.tensor(0.5)], "a"))


if __name__ == "__main__":
    unittest.main()
