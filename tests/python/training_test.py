"""What a training loop of one replica may do beside the usual: batches without a step, layers that are frozen for a
while."""
import os
import tempfile
import unittest
import warnings

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.data import TensorDataset

import espalier
import espalier.torch as adl
from forked import alone
from small_program import data, make, mse, net, plain_batches, sgd, standard_error, train, values


class Unstepped(unittest.TestCase):
    """A batch that ends without a step is told of once, where it is not what was meant."""
    LINE = "a batch has ended without a step\\(\\) of each of its optimizers"

    def said(self, body):
        with standard_error() as written:
            body()
        return written[0].count("a batch has ended without")

    @alone
    def test_accumulation_of_ones_own_is_told_of_once(self):
        _, optimizer, parallel, loader = make()

        def body():
            for _ in adl.remaining_epochs_until(2):
                for number, (x, y) in enumerate(loader):
                    (mse(parallel(x), y) / 4).backward()
                    if number % 4 == 3:
                        optimizer.step()
        with standard_error() as written:
            body()
        self.assertRegex(written[0], "^espalier: step 1: " + self.LINE)
        self.assertIn("local_bsz_bounds", written[0])
        self.assertEqual(written[0].count("\n"), 1, written[0])
        self.assertEqual((parallel.steps, parallel.skipped_steps), (20, 16))

    @alone
    def test_no_sync_around_all_but_the_last_of_four(self):
        _, optimizer, parallel, loader = make()

        def body():
            for _ in adl.remaining_epochs_until(1):
                for number, (x, y) in enumerate(loader):
                    if number % 4 != 3:
                        with parallel.no_sync():
                            mse(parallel(x), y).backward()
                    else:
                        mse(parallel(x), y).backward()
                        optimizer.step()
        self.assertEqual(self.said(body), 1)

    @alone
    def test_one_of_two_optimizers_is_not_stepped(self):
        model = net()
        optimizers = [torch.optim.SGD(model[0].parameters(), 0.01), torch.optim.SGD(model[2].parameters(), 0.01)]
        parallel = adl.AdaptiveDataParallel(model, optimizers)
        loader = adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=20)

        def body():
            for _ in adl.remaining_epochs_until(1):
                for x, y in loader:
                    mse(parallel(x), y).backward()
                    optimizers[0].step()
        self.assertEqual(self.said(body), 1)

    @alone
    def test_pieces_of_a_batch_may_go_unstepped(self):
        model, optimizer, parallel, loader = make(loader={"local_bsz_bounds": (None, 5)})

        def body():
            for _ in adl.remaining_epochs_until(1):
                for number, (x, y) in enumerate(loader):
                    mse(parallel(x), y).backward()
                    if number % 4 == 3:
                        optimizer.step()
        self.assertEqual(self.said(body), 0)
        self.assertEqual((parallel.steps, parallel.skipped_steps), (10, 0))

    @alone
    def test_a_piece_that_is_left_out_where_each_is_written_down(self):
        class Writer:
            def add_scalar(self, *_):
                pass

        _, optimizer, parallel, loader = make(loader={"local_bsz_bounds": (None, 5)})

        def body():
            for _ in adl.remaining_epochs_until(1):
                for number, (x, y) in enumerate(loader):
                    mse(parallel(x), y).backward()
                    loader.to_tensorboard(Writer(), number)  # which does not ask whether a step is due
                    if number != 9:
                        optimizer.step()
        self.said(body)
        self.assertEqual((parallel.steps, parallel.skipped_steps), (10, 1))

    @alone
    def test_quiet_where_a_scaler_found_what_is_not_finite(self):
        _, optimizer, parallel, loader = make()
        scaler = torch.amp.GradScaler("cpu", init_scale=16.0)

        def body():
            for _ in adl.remaining_epochs_until(1):
                for number, (x, y) in enumerate(loader):
                    scaler.scale(mse(parallel(x), y) * (float("inf") if number in (3, 4) else 1.0)).backward()
                    scaler.step(optimizer)
                    scaler.update()
        self.assertEqual(self.said(body), 0)
        self.assertEqual(parallel.skipped_steps, 2)

    @alone
    def test_quiet_where_the_program_saw_that_itself_or_ran_no_backward(self):
        _, optimizer, parallel, loader = make()

        def body():
            for _ in adl.remaining_epochs_until(1):
                for number, (x, y) in enumerate(loader):
                    if number == 2:
                        continue
                    loss = mse(parallel(x), y) * (float("nan") if number == 5 else 1.0)
                    loss.backward()
                    if torch.isfinite(loss):
                        optimizer.step()
        self.assertEqual(self.said(body), 0)
        self.assertEqual(parallel.skipped_steps, 2)

    @alone
    def test_quiet_where_another_model_was_stepped(self):
        critic, generator = net(), net(seed=9)
        optimizers = [sgd(critic.parameters()), sgd(generator.parameters())]
        parallel = [adl.AdaptiveDataParallel(model, optimizer, name=f"model-{i}")
                    for i, (model, optimizer) in enumerate(zip((critic, generator), optimizers))]
        loader = adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=20)

        def body():
            for _ in adl.remaining_epochs_until(1):
                for number, (x, y) in enumerate(loader):
                    mse(parallel[0](x), parallel[1](x)).backward()
                    optimizers[0].step()
                    if number % 2:
                        optimizers[1].step()
        self.assertEqual(self.said(body), 0)


class Unwrapped(unittest.TestCase):
    """An optimizer that no AdaptiveDataParallel was given."""

    def loop(self, model, step, epochs=1):
        loader = adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=20, training=True)
        for _ in adl.epochs(epochs):
            for x, y in loader:
                mse(model(x), y).backward()
                step(x)

    @alone
    def test_without_any_wrapped_model_it_is_refused(self):
        model = net()
        optimizer = sgd(model.parameters())
        before = values(model)
        with self.assertRaisesRegex(espalier.UsageError, "SGD was not given to AdaptiveDataParallel.*model of its own: "
                                    r"model = AdaptiveDataParallel\(model, optimizer\) before the first epoch"):
            self.loop(model, lambda _: optimizer.step())
        self.assertTrue(torch.equal(values(model), before))

    @alone
    def test_beside_a_wrapped_model_it_is_warned_of_once(self):
        model, other = net(), net()
        own, forgotten = sgd(model.parameters()), sgd(other.parameters())
        parallel = adl.AdaptiveDataParallel(model, own)

        def step(x):
            own.step()
            other(x).sum().backward()
            forgotten.step()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.loop(parallel, step, 2)
        self.assertEqual([str(each.message).split(",")[0] for each in said],
                         ["this SGD was not given to AdaptiveDataParallel"])
        self.assertEqual(said[0].filename, __file__)
        self.assertEqual(parallel.steps, 20)

    @alone
    def test_what_may_well_be_a_replicas_own_is_left_alone(self):
        class Behind(torch.optim.Optimizer):
            """Steps another over the same parameters, as Lookahead does."""

            def __init__(self, inner):
                self.inner = inner
                super().__init__(inner.param_groups, {})

            def step(self, closure=None):
                self.inner.step()

        model = net()
        own = Behind(sgd(model.parameters()))
        parallel = adl.AdaptiveDataParallel(model, own)

        def step(x):
            own.step()
            perturbed = x.clone().requires_grad_()
            model(perturbed).sum().backward()
            torch.optim.SGD([perturbed], 0.1).step()
        before = values(model)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.loop(parallel, step)
        self.assertFalse(torch.equal(values(model), before))

    @alone
    def test_wrapped_ones_pass_by_what_torch_calls_for_a_step(self):
        from espalier.torch import _refusals
        calls = []
        model, own, parallel, loader = make()
        watch = _refusals._StepWatch.__call__
        _refusals._StepWatch.__call__ = lambda *arguments: (calls.append(1), watch(*arguments))[1]
        train(own, parallel, loader)
        self.assertEqual(len(calls), 0)
        register_optimizer_step_pre_hook(lambda *_: None)
        train(own, parallel, loader, 2)
        self.assertEqual(len(calls), 10)


class DropLast(unittest.TestCase):
    def loader(self, samples=103, **options):
        return adl.AdaptiveDataLoader(TensorDataset(torch.arange(samples)), batch_size=17, drop_last=True, **options)

    @alone
    def test_an_epoch_is_of_whole_batches(self):
        loader, held_out = self.loader(shuffle=True), self.loader(35)
        self.assertEqual((len(loader), loader.samples, len(held_out)), (6, 102, 2))
        left_out = set()
        for _ in adl.epochs(4):
            batches = [numbers.tolist() for numbers, in loader]
            self.assertEqual([len(batch) for batch in batches], [17] * 6)
            seen = set(sum(batches, []))
            self.assertEqual(len(seen), 102)
            left_out |= set(range(103)) - seen
            self.assertEqual([len(numbers) for numbers, in held_out], [17, 17])
        self.assertGreater(len(left_out), 1, "another one in each epoch")

    @alone
    def test_batch_norm_trains_where_one_sample_would_be_left(self):
        model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
        own = torch.optim.SGD(model.parameters(), 0.01)
        parallel = adl.AdaptiveDataParallel(model, own)
        loader = adl.AdaptiveDataLoader(TensorDataset(*data(201)), batch_size=20, shuffle=True, drop_last=True,
                                        num_workers=1)
        train(own, parallel, loader, 2)
        self.assertEqual(parallel.steps, 20)

    @alone
    def test_nothing_would_be_left(self):
        with self.assertRaisesRegex(espalier.UsageError, "leaves nothing of 10 samples.*batch_size, 17"):
            self.loader(10)

    @alone
    def test_where_the_batch_may_grow_it_is_warned_of(self):
        os.environ["ESPALIER_BATCH_MODE"] = "adaptive"
        with self.assertWarnsRegex(UserWarning, "may grow to 40 samples.* its 102 samples"):
            self.loader().autoscale_batch_size(40)


class Frozen(unittest.TestCase):
    def noise(self, handed_over):
        """What is known of the noise, where a layer has fewer of Adam's steps than the others. `handed_over`: from a
        state as one who joins gets it."""
        model, optimizer, parallel, loader = make(optimizer=lambda p: torch.optim.Adam(p, 0.01))
        for epoch in adl.epochs(6):
            model[0].requires_grad_(epoch not in (2, 3, 4))
            for number, (x, y) in enumerate(loader):
                if handed_over and epoch == 5 and number == 0:
                    parallel._trained.read_state(*parallel._trained.write_state())
                mse(parallel(x), y).backward()
                optimizer.step()
        self.assertTrue(parallel._trained._moments_given)
        return torch.tensor([parallel.gns.sqr_avg(), parallel.gns.var_avg()], dtype=torch.double)

    @alone
    def test_adams_moments_are_the_same_for_one_who_joins(self):
        with tempfile.TemporaryDirectory() as folder:
            for handed_over in (False, True):
                if (child := os.fork()) == 0:
                    torch.save(self.noise(handed_over), f"{folder}/{handed_over}")
                    os._exit(0)
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            older, joiner = (torch.load(f"{folder}/{handed_over}") for handed_over in (False, True))
        torch.testing.assert_close(joiner, older, rtol=1e-9, atol=0)

    def compare(self, optimizer):
        """The first layer is frozen after the wrap, and trained from the third epoch on."""
        model, own, parallel, loader = make(optimizer=optimizer)
        plain = net()
        plain_optimizer = optimizer(plain.parameters())
        for of in (model, plain):
            of[0].requires_grad_(False)
        before = model[0].weight.clone()
        for epoch in adl.epochs(4):
            for of in (model, plain):
                of[0].requires_grad_(epoch > 2)
            for x, y in loader:
                own.zero_grad()
                mse(parallel(x), y).backward()
                own.step()
            for x, y in plain_batches(*data(), 20):
                plain_optimizer.zero_grad()
                mse(plain(x), y).backward()
                plain_optimizer.step()
            self.assertEqual(torch.equal(before, model[0].weight), epoch <= 2)
        self.assertTrue(torch.equal(values(model), values(plain)))
        return parallel

    @alone
    def test_a_layer_that_is_frozen_after_the_wrap_may_be_unfrozen(self):
        self.compare(sgd)

    @alone
    def test_adams_moments_are_known_once_all_are_trained(self):
        parallel = self.compare(lambda p: torch.optim.AdamW(p, 0.01))
        self.assertTrue(parallel._trained._moments_given)

    @alone
    def test_what_was_frozen_at_the_wrap_is_not_unfrozen(self):
        model = net()
        model[0].requires_grad_(False)
        model, optimizer, parallel, loader = make(model)
        with self.assertRaisesRegex(espalier.UsageError, 'parameter "0.weight" required no gradient when the model was '
                                                         "wrapped.*frozen after that"):
            for epoch in adl.epochs(2):
                model[0].requires_grad_(epoch == 2)
                for x, y in loader:
                    mse(parallel(x), y).backward()
                    optimizer.step()
                    self.assertEqual(epoch, 1)

    @alone
    def test_a_group_that_is_frozen_as_a_whole(self):
        def groups(model):
            return torch.optim.AdamW([{"params": list(model[0].parameters())},
                                      {"params": list(model[2].parameters()), "lr": 0.02}], 0.01)
        model, plain = net(), net()
        for of in (model, plain):
            of[0].requires_grad_(False)
        model, optimizer, parallel, loader = make(model, lambda _: groups(model))
        train(optimizer, parallel, loader)
        plain_optimizer = groups(plain)
        for x, y in plain_batches(*data(), 20):
            plain_optimizer.zero_grad()
            mse(plain(x), y).backward()
            plain_optimizer.step()
        self.assertTrue(torch.equal(values(model), values(plain)))
        self.assertTrue(parallel._trained._moments_given)


if __name__ == "__main__":
    unittest.main()
