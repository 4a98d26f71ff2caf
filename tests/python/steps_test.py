"""Steps of one replica without a tuner: what they compute, and what PyTorch's users take for granted."""
import contextlib
import functools
import math
import os
import subprocess
import sys
import traceback
import unittest

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.checkpoint import checkpoint
from torch.utils.data import TensorDataset

import espalier
import espalier.torch as adl
from espalier import _library
from espalier._runtime import runtime
from forked import alone
from small_program import data, net, plain_batches, values


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01),
    "adadelta": lambda p: torch.optim.Adadelta(p, 0.5),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.001),
    "nadam": lambda p: torch.optim.NAdam(p, 0.01),
}


class ModelElsewhere(unittest.TestCase):
    """A model that is not on its slot's device is said by the runtime, for all languages."""

    def test_is_said_once_and_on_standard_error(self):
        program = ("import torch, espalier.torch as adl\n"
                   "from espalier._runtime import runtime\n"
                   "def wrap(net, name):\n"
                   "    adl.AdaptiveDataParallel(net, torch.optim.SGD(net.parameters(), 0.1), name=name)\n"
                   "wrap(torch.nn.Linear(2, 1, device='meta'), 'elsewhere')\n"
                   "runtime().device = torch.device('cuda:0')\n"  # what the package itself would go by
                   "wrap(torch.nn.Linear(2, 1), 'here')\n")
        done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r'^espalier: AdaptiveDataParallel "elsewhere": its parameters are on meta.*\n$')


class Odd(torch.nn.Module):
    """Layers whose activations backward computes again, which share a weight, and one that is not used."""

    def __init__(self, reentrant=None, last=False, tied=False):
        super().__init__()
        torch.manual_seed(5)
        self.first, self.second, self.third, self.last, self.unused = (
            torch.nn.Linear(*size) for size in ((6, 16), (16, 16), (16, 16), (16, 1), (4, 4)))
        if tied:
            self.third.weight = self.second.weight
        self._again = None if reentrant is None else functools.partial(checkpoint, use_reentrant=reentrant)
        self._last = last

    def forward(self, x):
        again = self._again or (lambda layer, x: layer(x))
        x = again(lambda x: self.second(x).relu(), self.first(x).relu())
        x = self.third(x).relu()
        return again(self.last, x) if self._last else self.last(x)


class Followed(unittest.TestCase):
    """What a loop leaves out while nobody looks at it is there as soon as somebody does."""

    @alone
    def test_by_profiles_and_hooks(self):
        model, seen = net(), []
        other = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.01)

        class Counted(torch.optim.SGD):
            calls = 0

            @functools.wraps(torch.optim.SGD.step)  # with all that torch has set on it by now
            def step(self, closure=None):
                self.calls += 1
                return torch.optim.SGD.step(self, closure)

        optimizer = Counted(model.parameters(), 0.01)
        adl.AdaptiveDataParallel(model, optimizer)
        ended = adl.AdaptiveDataParallel(torch.nn.ParameterList(other.param_groups[0]["params"]), other, name="other")
        loader = adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=50)
        hooks = []
        profile = torch.autograd.profiler.profile(enabled=False)
        for epoch in adl.remaining_epochs_until(4):
            if epoch == 1:
                profile = torch.autograd.profiler.profile()
            elif epoch == 2:
                hooks = [other.register_step_post_hook(lambda *_: seen.append("own")),
                         register_optimizer_step_pre_hook(lambda *_: seen.append("any"))]
            elif epoch == 3:
                for hook in hooks:
                    hook.remove()
            with profile if epoch == 1 else contextlib.nullcontext():
                for x, y in loader:
                    (torch.nn.functional.mse_loss(model(x), y) + other.param_groups[0]["params"][0].sum()).backward()
                    optimizer.step()
                    other.step()
        steps = ended.steps // 4
        self.assertGreater(steps, 1)
        labels = {each.key: each.count for each in profile.key_averages()}
        self.assertEqual(labels["Optimizer.step#SGD.step"], steps)
        self.assertEqual(labels["enumerate(DataLoader)#AdaptiveDataLoader.__next__"], steps)
        self.assertEqual((seen.count("own"), seen.count("any")), (steps, 2 * steps))
        self.assertEqual(optimizer.calls, 4 * steps)


class SameAsPlain(unittest.TestCase):
    """With the batch that the rate is meant for, a lone replica does what the plain loop does, to the bit."""

    def compare(self, optimizer, epochs=3, batch=20, between=lambda model: None, wrap=lambda model: model,
                schedule=None, convert=lambda model: model, build=net, each_epoch=None):
        x, y = map(convert, data())
        plain = convert(build())
        plain_optimizer = optimizer(plain.parameters())
        plain_schedule = schedule(plain_optimizer) if schedule else None
        run = wrap(plain)
        for _ in range(epochs):
            for inputs, targets in plain_batches(x, y, batch):
                plain_optimizer.zero_grad()
                torch.nn.functional.mse_loss(run(inputs), targets).backward()
                between(plain)
                plain_optimizer.step()
                if plain_schedule and not each_epoch:
                    plain_schedule.step()
            if each_epoch:
                each_epoch(plain_schedule, plain, x, y)
        ours = convert(build())
        own_optimizer = optimizer(ours.parameters())
        own_schedule = schedule(own_optimizer) if schedule else None
        model = adl.AdaptiveDataParallel(wrap(ours), own_optimizer, own_schedule)
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=batch)
        for _ in adl.remaining_epochs_until(epochs):
            for inputs, targets in loader:
                own_optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(inputs), targets).backward()
                between(ours)
                own_optimizer.step()
                if own_schedule and not each_epoch:
                    own_schedule.step()
            if each_epoch:
                each_epoch(own_schedule, ours, x, y)
        if own_schedule:
            self.assertEqual([group["lr"] for group in own_optimizer.param_groups],
                             [group["lr"] for group in plain_optimizer.param_groups])
        self.assertEqual(model.steps, epochs * math.ceil(len(x) / batch))
        self.assertTrue(torch.equal(values(plain), values(ours)), (values(plain) - values(ours)).abs().max())

    @alone
    def test_clipped_between_backward_and_step(self):
        self.compare(OPTIMIZERS["sgd"],
                     between=lambda model: torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5))

    @alone
    def test_compiled_model(self):
        self.compare(OPTIMIZERS["sgd"], wrap=lambda model: torch.compile(model, backend="aot_eager"))

    @alone
    def test_parameters_of_bfloat16(self):
        half = lambda model: model.bfloat16()  # noqa: E731
        self.compare(OPTIMIZERS["sgd"], convert=half)

    @alone
    def test_schedule_of_batches(self):
        self.compare(OPTIMIZERS["sgd"],
                     schedule=lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.05, total_steps=40))

    @alone
    def test_parameters_of_half(self):
        self.compare(lambda p: torch.optim.SGD(p, 0.001), convert=lambda of: of.half())

    @alone
    def test_schedule_of_a_function(self):
        self.compare(OPTIMIZERS["sgd"], schedule=lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda n: 0.9 ** n))

    @alone
    def test_schedules_in_sequence(self):
        of = torch.optim.lr_scheduler
        self.compare(OPTIMIZERS["adamw"], schedule=lambda o: of.SequentialLR(
            o, [of.LinearLR(o, 0.1, total_iters=5), of.CosineAnnealingLR(o, 20)], milestones=[5]))

    @alone
    def test_schedule_by_what_an_epoch_has_come_to(self):
        def each_epoch(schedule, model, x, y):
            with torch.no_grad():
                schedule.step(torch.nn.functional.mse_loss(model(x), y))
        self.compare(OPTIMIZERS["sgd"], each_epoch=each_epoch, schedule=lambda o: torch.optim.lr_scheduler.
                     ReduceLROnPlateau(o, factor=0.5, patience=0, threshold=0.5))

    @alone
    def test_activations_that_are_computed_again(self):
        for reentrant in (False, True):
            for last in (False, True):
                if (child := os.fork()) == 0:
                    try:
                        self.compare(OPTIMIZERS["sgd"], build=lambda: Odd(reentrant=reentrant, last=last))
                    except BaseException:
                        traceback.print_exc()
                        os._exit(1)
                    os._exit(0)
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0, (reentrant, last))

    @alone
    def test_tied_and_unused_parameters(self):
        self.compare(OPTIMIZERS["adamw"], build=lambda: Odd(tied=True))


for _name, _make in OPTIMIZERS.items():
    setattr(SameAsPlain, f"test_{_name}", alone(lambda self, make=_make: self.compare(make)))


class Steps(unittest.TestCase):
    def make(self, batch=20, **options):
        x, y = data()
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        parallel = adl.AdaptiveDataParallel(model, optimizer, **options)
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=batch)
        return model, optimizer, parallel, loader

    def expect_like_plain(self, model, passes, batch=20):
        """One epoch with these backward passes a batch."""
        x, y = data()
        plain = net()
        optimizer = torch.optim.SGD(plain.parameters(), 0.01)
        for inputs, targets in plain_batches(x, y, batch):
            optimizer.zero_grad()
            for one in passes:
                one(plain, inputs, targets).backward()
            optimizer.step()
        torch.testing.assert_close(values(model), values(plain), rtol=1e-6, atol=1e-7)

    TWO = (lambda m, x, y: torch.nn.functional.mse_loss(m(x), y),
           lambda m, x, y: 0.5 * m(x).abs().mean())

    @alone
    def test_two_backward_passes_add_up(self):
        model, optimizer, parallel, loader = self.make()
        for _ in adl.remaining_epochs_until(1):
            for x, y in loader:
                for one in self.TWO:
                    one(parallel, x, y).backward()
                optimizer.step()
        self.expect_like_plain(model, self.TWO)

    @alone
    def test_two_backward_passes_in_several_microbatches(self):
        x, y = data()
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        parallel = adl.AdaptiveDataParallel(model, optimizer)
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20, local_bsz_bounds=(None, 5))
        taken = 0
        for _ in adl.remaining_epochs_until(1):
            for inputs, targets in loader:
                taken += 1
                self.assertEqual(len(inputs), 5)
                for one in self.TWO:
                    one(parallel, inputs, targets).backward()
                optimizer.step()
        self.assertEqual(taken, 40)
        self.assertEqual(parallel.steps, 10)
        self.expect_like_plain(model, self.TWO)

    @alone
    def test_bfloat16_in_several_microbatches_is_summed_in_float(self):
        x, y = (t.bfloat16() for t in data())
        model = net().bfloat16()
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        parallel = adl.AdaptiveDataParallel(model, optimizer)
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20, local_bsz_bounds=(None, 5))
        for _ in adl.remaining_epochs_until(1):
            for inputs, targets in loader:
                torch.nn.functional.mse_loss(parallel(inputs), targets).backward()
                optimizer.step()
        self.assertEqual(next(model.parameters()).dtype, torch.bfloat16)
        plain = net()
        own = torch.optim.SGD(plain.parameters(), 0.01)
        for inputs, targets in plain_batches(x.float(), y.float(), 20):
            own.zero_grad()
            torch.nn.functional.mse_loss(plain(inputs), targets).backward()
            own.step()
        torch.testing.assert_close(values(model).float(), values(plain), rtol=0.05, atol=0.01)

    @alone
    def test_no_sync_keeps_gradients_for_the_next_backward(self):
        model, optimizer, parallel, loader = self.make()
        for _ in adl.remaining_epochs_until(1):
            for x, y in loader:
                with parallel.no_sync():
                    self.TWO[0](parallel, x, y).backward()
                self.TWO[1](parallel, x, y).backward()
                optimizer.step()
        self.expect_like_plain(model, self.TWO)

    @alone
    def test_gradients_held_and_never_followed_count(self):
        model, optimizer, parallel, loader = self.make()
        for _ in adl.remaining_epochs_until(1):
            for x, y in loader:
                with parallel.no_sync():
                    self.TWO[0](parallel, x, y).backward()
                optimizer.step()
        self.expect_like_plain(model, self.TWO[:1])

    @alone
    def test_several_optimizers_of_one_model(self):
        x, y = data()
        model = net()
        first = torch.optim.SGD(model[0].parameters(), 0.01)
        second = torch.optim.Adam(model[2].parameters(), 0.02)
        parallel = adl.AdaptiveDataParallel(model, [first, second])
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20)
        for _ in adl.remaining_epochs_until(1):
            for inputs, targets in loader:
                torch.nn.functional.mse_loss(parallel(inputs), targets).backward()
                first.step()
                second.step()
        plain = net()
        both = torch.optim.SGD(plain[0].parameters(), 0.01), torch.optim.Adam(plain[2].parameters(), 0.02)
        for inputs, targets in plain_batches(x, y, 20):
            for optimizer in both:
                optimizer.zero_grad()
            torch.nn.functional.mse_loss(plain(inputs), targets).backward()
            for optimizer in both:
                optimizer.step()
        self.assertTrue(torch.equal(values(model), values(plain)))

    @alone
    def test_loss_scaling(self):
        model, optimizer, parallel, loader = self.make_scaled()
        scaler = self.scaler
        with self.subTest("scaled"):
            for _ in adl.remaining_epochs_until(2):
                for x, y in loader:
                    scaler.scale(torch.nn.functional.mse_loss(parallel(x), y)).backward()
                    scaler.unscale_(optimizer)
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    scaler.step(optimizer)
                    scaler.update()
        self.assertEqual(parallel.steps, 20)
        self.assertTrue(torch.isfinite(values(model)).all())

    @alone
    def test_loss_scaling_of_a_scaler_that_was_not_named(self):
        x, y = data()
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=5)
        parallel = adl.AdaptiveDataParallel(model, optimizer)
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20, local_bsz_bounds=(None, 10))
        for _ in adl.remaining_epochs_until(1):
            for inputs, targets in loader:
                scaler.scale(torch.nn.functional.mse_loss(parallel(inputs), targets)).backward()
                scaler.unscale_(optimizer)
                scaler.step(optimizer)
                scaler.update()
        self.assertEqual(parallel.steps, 10)
        self.assertEqual(scaler.get_scale(), 16.0, "grown twice: 10 steps of two batches each")
        torch.testing.assert_close(values(model), self.plain_values(), rtol=1e-5, atol=1e-6)

    def plain_values(self):
        x, y = data()
        plain = net()
        optimizer = torch.optim.SGD(plain.parameters(), 0.01)
        for inputs, targets in plain_batches(x, y, 20):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(plain(inputs), targets).backward()
            optimizer.step()
        return values(plain)

    @alone
    def test_a_dropped_step_is_no_news_for_the_scale(self):
        model, optimizer, parallel, loader = self.make_scaled()
        scaler = self.scaler
        scaler.set_growth_interval(10)
        for _ in adl.remaining_epochs_until(1):
            for number, (x, y) in enumerate(loader):
                scaler.scale(torch.nn.functional.mse_loss(parallel(x), y)).backward()
                scaler.step(optimizer)
                if number == 4:
                    parallel._trained._outcome = _library.DROPPED  # as where a replica was lost in it
                scaler.update()
        self.assertEqual(scaler._get_growth_tracker(), 9)
        self.assertEqual(scaler.get_scale(), 1024.0)

    @alone
    def test_a_scaler_may_find_fault_with_one_of_several_optimizers(self):
        faults = {2: 0, 5: 1, 7: 0}  # by batch: whose gradients are not finite
        x, y = data()
        model = net()
        both = [torch.optim.SGD(model[layer].parameters(), 0.01) for layer in (0, 2)]
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        parallel = adl.AdaptiveDataParallel(model, both, mp_scaler=scaler)
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20)
        number = 0
        for i, layer in enumerate((0, 2)):
            model[layer].weight.register_hook(lambda g, i=i: g * float("inf") if faults.get(number) == i else g)
        for _ in adl.remaining_epochs_until(1):
            for number, (inputs, targets) in enumerate(loader):
                scaler.scale(torch.nn.functional.mse_loss(parallel(inputs), targets)).backward()
                for optimizer in both:
                    scaler.step(optimizer)
                scaler.update()
        self.assertEqual((parallel.steps, parallel.skipped_steps), (10, 3))
        self.assertEqual(scaler.get_scale(), 128.0)
        plain = net()
        own = torch.optim.SGD(plain.parameters(), 0.01)
        for number, (inputs, targets) in enumerate(plain_batches(x, y, 20)):
            own.zero_grad()
            torch.nn.functional.mse_loss(plain(inputs), targets).backward()
            if number not in faults:
                own.step()
        torch.testing.assert_close(values(model), values(plain), rtol=1e-5, atol=1e-6)

    def make_scaled(self):
        x, y = data()
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        parallel = adl.AdaptiveDataParallel(model, optimizer, mp_scaler=self.scaler)
        return model, optimizer, parallel, adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20)

    @alone
    def test_steps_that_are_not_finite_are_left_out(self):
        model, optimizer, parallel, loader = self.make()
        seen = None
        for _ in adl.remaining_epochs_until(1):
            for number, (x, y) in enumerate(loader):
                before = values(model).clone()
                factor = float("nan") if number == 4 else 1.0
                (torch.nn.functional.mse_loss(parallel(x), y) * factor).backward()
                optimizer.step()
                if number == 4:
                    seen = torch.equal(before, values(model))
        self.assertTrue(seen)
        self.assertEqual(parallel.skipped_steps, 1)
        self.assertEqual(parallel.steps, 10)

    @alone
    def test_a_loss_that_stays_not_finite_fails_the_trial(self):
        _, optimizer, parallel, loader = self.make(max_skipped_steps=2)
        with self.assertRaisesRegex(espalier.TrialError, "not finite at step"):
            for _ in adl.remaining_epochs_until(1):
                for x, y in loader:
                    (torch.nn.functional.mse_loss(parallel(x), y) * float("inf")).backward()
                    optimizer.step()

    @alone
    def test_batches_without_a_step_are_skipped(self):
        model, optimizer, parallel, loader = self.make()
        before = values(model).clone()
        for _ in adl.remaining_epochs_until(1):
            for x, y in loader:
                torch.nn.functional.mse_loss(parallel(x), y).backward()
        self.assertEqual(parallel.steps, 10)
        self.assertTrue(torch.equal(before, values(model)))

    @alone
    def test_parameters_that_are_replaced_are_followed(self):
        model, optimizer, parallel, loader = self.make()
        for _ in adl.remaining_epochs_until(1):
            for number, (x, y) in enumerate(loader):
                if number == 3:
                    model.double().float()  # gives each parameter another accumulator
                before = values(model).clone()
                torch.nn.functional.mse_loss(parallel(x), y).backward()
                optimizer.step()
                self.assertFalse(torch.equal(before, values(model)), number)

    @alone
    def test_a_rule_of_ones_own_is_asked_once_a_step(self):
        asked = []

        class Half(adl.scaling_rules.ScalingRuleBase):
            def scale_lr(self, scale):
                asked.append((scale, self.adp.gns.raw_sqr_avg.shape))
                return 0.5

        x, y = data()
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        parallel = adl.AdaptiveDataParallel(model, optimizer, scaling_rule=Half())
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20)
        for _ in adl.remaining_epochs_until(1):
            for inputs, targets in loader:
                torch.nn.functional.mse_loss(parallel(inputs), targets).backward()
                optimizer.step()
        self.assertEqual(optimizer.param_groups[0]["lr"], 0.02, "the program's own again")
        self.assertGreaterEqual(len(asked), 10)
        self.assertEqual(asked[0][1], (1,))
        self.expect_like_plain(model, self.TWO[:1])

    @alone
    def test_what_a_rule_of_ones_own_knows(self):
        seen = []

        class Own(adl.scaling_rules.LinearScale):
            def __init__(self, power):  # as programs write it, without the base's
                self.power = power

            def scale_lr(self, scale):
                seen.append((self.adp.gns.get_progress(), len(self._optimizer.param_groups)))
                return super().scale_lr(scale) ** self.power

        x, y = data()
        model = net()
        optimizer = torch.optim.SGD([{"params": [p]} for p in model.parameters()], 0.01)
        parallel = adl.AdaptiveDataParallel(model, optimizer, scaling_rule=Own(0.5))
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20)
        self.train(optimizer, parallel, loader)
        self.assertEqual([groups for _, groups in seen], [4] * len(seen))
        self.assertEqual(sorted({progress for progress, _ in seen})[-1], 9.0)
        self.assertEqual(parallel.gns.get_progress(), 10.0)
        self.assertEqual(parallel.scaling_rule.power, 0.5)

    def train(self, optimizer, parallel, loader):
        """An epoch. Returns by what factor each step's rate was scaled."""
        factors = []
        for _ in adl.remaining_epochs_until(1):
            for inputs, targets in loader:
                torch.nn.functional.mse_loss(parallel(inputs), targets).backward()
                optimizer.step()
                factors.append(runtime().position.factor)
        return factors

    @alone
    def test_a_warm_up_over_another_number_of_samples_than_the_loaders(self):
        model, optimizer, parallel, loader = self.make(scaling_rule=adl.scaling_rules.LEGWScale(2, 50))
        factors = self.train(optimizer, parallel, loader)
        self.assertEqual([round(factor, 6) for factor in factors[:7]], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.0])

    @alone
    def test_rules_by_name(self):
        for name, kind in (("linear", "LinearScale"), ("sqrt", "SqrtScale"), ("legw:3", "LEGWScale"),
                           ("legw:2.5", "LEGWScale"), ("adamscale", "AdamScale"), ("none", "_NoScale")):
            model = net()
            wrapped = adl.AdaptiveDataParallel(model, torch.optim.SGD(model.parameters(), 0.1), scaling_rule=name,
                                               name=name)
            self.assertEqual(type(wrapped.scaling_rule).__name__, kind)

    @alone
    def test_an_exception_of_the_optimizer_is_raised_as_it_is(self):
        class Broken(torch.optim.SGD):
            def step(self, closure=None):
                raise ZeroDivisionError("on purpose")

        x, y = data()
        model = net()
        optimizer = Broken(model.parameters(), 0.01)
        parallel = adl.AdaptiveDataParallel(model, optimizer)
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20)
        with self.assertRaisesRegex(ZeroDivisionError, "on purpose"):
            for _ in adl.remaining_epochs_until(1):
                for inputs, targets in loader:
                    torch.nn.functional.mse_loss(parallel(inputs), targets).backward()
                    optimizer.step()

if __name__ == "__main__":
    unittest.main()
