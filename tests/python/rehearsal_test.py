"""What a rehearsal leaves behind: nothing."""
import os
import tempfile
import unittest

import torch
from torch.utils.data import TensorDataset

import espalier
import espalier.torch as adl
from forked import alone
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


if __name__ == "__main__":
    unittest.main()
