"""What a rehearsal leaves behind: nothing. And what processes do once for all that are forked from them."""
import importlib
import linecache
import multiprocessing
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import torch
from torch.utils.data import TensorDataset

import espalier
import espalier.torch as adl
from forked import alone, in_child
from small_program import data


class Program:
    """A model that draws and remembers, a schedule of batches, and sums."""

    def __init__(self):
        torch.manual_seed(5)
        self.x, self.y = data(60)
        self.net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.3),
                                       torch.nn.Linear(8, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters(), 0.01)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, gamma=0.5)
        self.model = adl.AdaptiveDataParallel(self.net, self.optimizer, self.schedule)
        self.loader = adl.AdaptiveDataLoader(TensorDataset(self.x, self.y), batch_size=20)
        self.seen = adl.Accumulator()

    def batch(self, x, y):
        self.seen["samples"] += len(x)
        torch.nn.functional.mse_loss(self.model(x), y).backward()
        self.optimizer.step()
        self.schedule.step()

    def rehearse(self, times=1):
        self.model.rehearse(lambda: [self.batch(self.x[:8], self.y[:8]) for _ in range(times)])

    def state(self):
        """All that the model is, and a draw of the program's own."""
        return [*(t.detach().clone() for t in self.net.state_dict().values()), torch.rand(4)]

    def train(self):
        for _ in adl.epochs(2):
            for x, y in self.loader:
                self.batch(x, y)
            with self.seen.synchronized():
                samples = self.seen["samples"]
                self.seen.clear()
        assert samples == 60, f"{samples}: the rehearsal's are not counted"
        assert self.model.steps == 6
        return [*self.state(), *(m for s in self.optimizer.state.values() for m in s.values()),
                torch.tensor(self.schedule.get_last_lr())]


class Rehearsal(unittest.TestCase):
    def expect_same(self, a, b):
        self.assertEqual(len(a), len(b))
        for i, (one, other) in enumerate(zip(a, b)):
            self.assertTrue(torch.equal(one, other), f"tensor {i}")

    @alone
    def test_leaves_all_as_it_was(self):
        program = Program()
        draws = torch.get_rng_state()
        before = program.state()
        torch.set_rng_state(draws)
        gradients = []
        for p in program.net.parameters():
            p.register_hook(lambda grad: gradients.append(grad.abs().sum().item()))
        program.rehearse()
        self.assertEqual(len(gradients), 6, "backward went through all of it")
        self.assertGreater(max(gradients), 0)
        self.expect_same(before, program.state())
        self.assertTrue(all(p.grad is None for p in program.net.parameters()))
        self.assertEqual(len(program.optimizer.state), 0)
        self.assertEqual(program.schedule.last_epoch, 0)
        self.assertEqual(program.model.steps, 0)

    @alone
    def test_changes_nothing_in_what_is_learnt_after_it(self):
        with tempfile.TemporaryDirectory() as folder:
            if (child := os.fork()) == 0:
                torch.save(Program().train(), f"{folder}/learnt")
                os._exit(0)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            learnt = torch.load(f"{folder}/learnt")
        program = Program()
        program.rehearse()
        program.rehearse()
        self.expect_same(learnt, program.train())

    @alone
    def test_several_backward_passes_belong_to_it(self):
        program = Program()
        before = program.state()

        def in_parts():
            with program.model.no_sync():
                program.model(program.x[:8]).sum().backward()
            program.model(program.x[8:16]).sum().backward()
            program.model(program.x[:4]).sum().backward()
            torch.nn.utils.clip_grad_norm_(program.net.parameters(), 0.5)
            program.optimizer.step()

        program.model.rehearse(in_parts)
        program.model.rehearse(lambda: program.model(program.x[:4]).sum().backward())  # and no step
        self.expect_same(before[:-1], program.state()[:-1])
        program.train()

    @alone
    def test_gradients_that_the_program_sets_belong_to_it(self):
        program = Program()
        parameters = list(program.net.parameters())

        def batch():
            loss = torch.nn.functional.mse_loss(program.model(program.x[:8]), program.y[:8])
            for p, gradient in zip(parameters, torch.autograd.grad(loss, parameters)):
                p.grad = gradient
            program.optimizer.step()

        before = program.state()[:-1]
        program.model.rehearse(batch)
        self.expect_same(before, program.state()[:-1])
        self.assertTrue(all(p.grad is None for p in parameters))

    @alone
    def test_a_loss_scale_stays(self):
        x, y = data(40)
        net = torch.nn.Linear(6, 1)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1)
        model = adl.AdaptiveDataParallel(net, optimizer, mp_scaler=scaler)
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20)

        def batch(inputs, targets):
            scaler.scale(torch.nn.functional.mse_loss(model(inputs), targets)).backward()
            scaler.step(optimizer)
            scaler.update()

        before = net.weight.detach().clone()
        model.rehearse(lambda: batch(x[:8], y[:8]))
        self.assertEqual(scaler.get_scale(), 1024.0)
        self.assertTrue(torch.equal(net.weight, before))
        for _ in adl.epochs(1):
            for inputs, targets in loader:
                batch(inputs, targets)
        self.assertEqual(scaler.get_scale(), 4096.0)

    @alone
    def test_all_models_of_the_trial_take_part(self):
        program = Program()
        second = torch.nn.Linear(6, 1)
        optimizer = torch.optim.SGD(second.parameters(), 0.1)
        model = adl.AdaptiveDataParallel(second, optimizer, name="second")
        with self.assertRaisesRegex(espalier.UsageError, 'no backward brought gradients of .*"second"'):
            program.rehearse()

        def both():
            program.batch(program.x[:8], program.y[:8])
            model(program.x[:8]).sum().backward()
            optimizer.step()

        program.model.rehearse(both)
        self.assertIsNone(second.weight.grad)
        self.assertEqual(len(optimizer.state), 0)

    @alone
    def test_an_exception_passes_and_leaves_nothing(self):
        program = Program()
        draws = torch.get_rng_state()
        before = program.state()
        torch.set_rng_state(draws)

        def fails():
            program.model(program.x[:8]).sum().backward()
            raise KeyError("of the program")

        with self.assertRaisesRegex(KeyError, "of the program"):
            program.model.rehearse(fails)
        self.expect_same(before, program.state())
        self.assertTrue(all(p.grad is None for p in program.net.parameters()))
        program.train()

    @alone
    def test_misuse_is_named(self):
        program = Program()
        with self.assertRaisesRegex(espalier.UsageError, "stepped without a batch"):
            program.rehearse(times=2)
        with self.assertRaisesRegex(espalier.UsageError, "within rehearse"):
            program.model.rehearse(program.rehearse)
        with self.assertRaisesRegex(espalier.UsageError, "an epoch was begun within rehearse"):
            program.model.rehearse(lambda: next(adl.epochs(1)))
        next(adl.epochs(2))
        with self.assertRaisesRegex(espalier.UsageError, "after training began"):
            program.rehearse()


class TwoOfThree(torch.nn.Module):
    """Takes the first two parts of a batch of three."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 1)
        self.passes, self.kept = 0, []
        self.register_buffer("assigned", torch.zeros(1))

    def forward(self, x, weights, scale=2.0):
        self.passes += 1
        self.kept.append(x)
        self.last = x.detach()
        self.assigned = self.assigned + 1
        return {"out": (self.layer(x * weights * scale), "text"), "none": None}


class ByName(torch.nn.Module):
    """As models of Transformers: takes a batch by names, and gives its loss."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Embedding(5, 3)

    def forward(self, ids=None, labels=None):
        out = self.layer(ids).sum(-1)
        return {"loss": (out - labels).pow(2).mean(), "out": out.detach()}


class Names(torch.utils.data.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, i):
        return {"ids": i % 5, "labels": float(i), "written by": 1}


class Joiners(unittest.TestCase):
    """What a replica that joins rehearses where its program says nothing."""

    def join(self, model, dataset=None, **options):
        """Begins to train as one that joins three others. Returns why it has not rehearsed, or None, and the samples of the
        batches with which it has."""
        run, why, sizes = espalier._runtime.runtime(), [], []
        run.facts.joins = 4
        # As the library says it: with no agent, the replica's own group does not ask.
        run.library.not_rehearsed = lambda text: why.append(text.decode())
        run.library.rehearsed_samples = lambda: 5
        model.register_forward_pre_hook(lambda _, given, named: sizes.append(len([*given, *named.values()][0])), with_kwargs=True)
        self.optimizer = torch.optim.SGD(model.parameters(), 0.01)
        self.model = adl.AdaptiveDataParallel(model, self.optimizer)
        x, y = data(20)
        self.loader = adl.AdaptiveDataLoader(TensorDataset(x, y) if dataset is None else dataset, batch_size=20, **options)
        self.in_loop = adl.epochs(2)
        next(self.in_loop)
        return why[0] if why else None, sizes

    @alone
    def test_pairs_of_which_the_model_takes_the_first(self):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        model.eval()
        brought = []
        model[0].weight.register_hook(lambda gradient: brought.append(gradient.abs().sum().item()))
        self.assertEqual(self.join(model), (None, [5]))
        self.assertGreater(brought[0], 0)
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(tensor, before[name]), name)
        self.assertFalse(any(module.training for module in model.modules()))
        self.assertTrue(all(p.grad is None for p in model.parameters()))

    @alone
    def test_as_many_parts_as_the_model_asks_for_and_its_attributes_stay(self):
        x, y = data(20)
        model = TwoOfThree()
        self.assertEqual(self.join(model, TensorDataset(x, torch.ones(20, 1), y)), (None, [5]))
        self.assertEqual((model.passes, model.kept, model.assigned.item(), hasattr(model, "last")), (0, [], 0.0, False))

    @alone
    def test_batches_with_names(self):
        self.assertEqual(self.join(ByName(), Names()), (None, [5]))

    @alone
    def test_several_models(self):
        second = torch.nn.Linear(6, 2)
        adl.AdaptiveDataParallel(second, torch.optim.SGD(second.parameters(), 0.1), name="second")
        self.assertEqual(self.join(torch.nn.Linear(6, 1)), (None, [5]))

    @alone
    def test_workers_stay(self):
        for kind in ({}, {"persistent_workers": True}):
            with self.subTest(kind):
                self.check_workers(data(20)[0], shuffle=True, **kind)

    @alone
    def test_workers_stay_of_streams(self):
        class Stream(torch.utils.data.IterableDataset):
            def __len__(self):
                return 20

            def __iter__(self):
                return iter(data(20)[0])
        self.check_workers(Stream())

    def check_workers(self, dataset, **options):
        def train():
            model = torch.nn.Linear(6, 1)
            why, sizes = self.join(model, dataset, num_workers=2, **options)
            workers = {child.pid for child in multiprocessing.active_children()}
            seen = [x.tolist() for x in self.loader for _ in [self.model(x).sum().backward()] for _ in [self.optimizer.step()]]
            return why, sizes[0], len(workers), sorted(sum(seen, [])) == sorted(data(20)[0].tolist())
        self.assertEqual(in_child(train), (None, 5, 2, True))

    @alone
    def test_what_is_learnt_is_the_same(self):
        def learnt(joins):
            program = Program()
            espalier._runtime.runtime().facts.joins = joins
            return [tensor.tolist() for tensor in program.train()]
        alone_, joined = (in_child(lambda joins=joins: learnt(joins)) for joins in (0, 2))
        self.assertEqual(alone_, joined)

    @alone
    def test_a_program_that_rehearses_is_not_asked_again(self):
        program = Program()
        calls = []
        program.net.register_forward_pre_hook(lambda *_: calls.append(1))
        program.rehearse()
        espalier._runtime.runtime().facts.joins = 2
        next(adl.epochs(1))
        self.assertEqual(len(calls), 1)

    def expect(self, why, model, *arguments, **options):
        said, _ = in_child(lambda: self.join(model, *arguments, **options))
        self.assertRegex(said, f"^{why}")
        # And the loop goes on as if nothing had been.
        def after():
            self.join(model, *arguments, **options)
            return [p.grad for p in model.parameters()]
        self.assertEqual(set(in_child(after)), {None})

    @alone
    def test_who_cannot_is_named(self):
        class NoForward(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(6, 1)

        class Keyword(NoForward):
            def forward(self, x, *, scale):
                return self.layer(x) * scale

        class Detached(NoForward):
            def forward(self, x):
                return self.layer(x).detach()

        class Broken(torch.utils.data.Dataset):
            def __len__(self):
                return 20

            def __getitem__(self, i):
                raise OSError(f"no file {i}\nand more")

        batch = "the forward pass of its model on a batch of the training loader"
        wish = "Want model.rehearse"
        self.expect(f"{batch}: NotImplementedError: .*{wish}", NoForward())
        self.expect(f"{batch}: TypeError: .*'scale'.*{wish}", Keyword())
        self.expect(f"{batch} gives nothing that has a gradient. {wish}", Detached())
        self.expect(f"{batch}: RuntimeError: mat1 and mat2 .*{wish}", torch.nn.Linear(7, 1))
        self.expect(f"a batch of the training loader: OSError: no file [0-9]+. {wish}", NoForward(), Broken())
        os.environ["ESPALIER_REHEARSAL"] = "off"
        self.expect("ESPALIER_REHEARSAL=off$", torch.nn.Linear(6, 1))
        os.environ["ESPALIER_REHEARSAL"] = "never"
        with self.assertRaisesRegex(espalier.UsageError, 'ESPALIER_REHEARSAL="never": want on or off'):
            self.join(torch.nn.Linear(6, 1))


class FirstUse(unittest.TestCase):
    def test_seeding_reads_no_source_of_torch(self):
        from espalier.torch import _first_use
        linecache.clearcache()
        importlib.reload(_first_use)
        with mock.patch.object(linecache, "updatecache", wraps=linecache.updatecache) as read:
            torch.manual_seed(5)
        folder = pathlib.Path(torch.__file__).parent
        self.assertEqual([], [call.args[0] for call in read.call_args_list if folder in pathlib.Path(call.args[0]).parents])


if __name__ == "__main__":
    unittest.main()
