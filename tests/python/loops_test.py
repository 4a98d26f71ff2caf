"""Loops of one replica without a tuner: data, sums, checkpoints, and what is refused."""
import io
import os
import pathlib
import sys
import tempfile
import types
import unittest
import zipfile

import torch
from torch.utils.data import Dataset, TensorDataset

import espalier
import espalier.torch as adl
from espalier._sums import Sums
from espalier.torch._schedules import Schedule
from forked import alone, in_child
from small_program import data, net, values


class Numbered(Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return index, torch.rand(1).item()


class Data(unittest.TestCase):
    def epoch(self, workers, **options):
        loader = adl.AdaptiveDataLoader(Numbered(103), batch_size=10, shuffle=True, num_workers=workers, **options)
        seen = {}
        for epoch in adl.remaining_epochs_until(2):
            seen[epoch] = [(i, v) for indices, drawn in loader
                           for i, v in zip(indices.tolist(), drawn.tolist())]
        return seen

    def expect_whole(self, seen):
        for epoch in range(2):
            self.assertEqual(sorted(i for i, _ in seen[epoch]), list(range(103)))
        self.assertNotEqual([i for i, _ in seen[0]], [i for i, _ in seen[1]])

    @alone
    def test_each_sample_once_an_epoch(self):
        self.expect_whole(self.epoch(0))

    @alone
    def test_workers_read_the_same(self):
        by_workers = in_child(lambda: self.epoch(2))
        self.expect_whole(by_workers)
        self.assertEqual(self.epoch(0), by_workers, "augmentation does not depend on workers")

    @alone
    def test_persistent_workers(self):
        self.expect_whole(self.epoch(2, persistent_workers=True))

    @alone
    def test_workers_that_are_not_forked_from_the_trial(self):
        self.expect_whole(self.epoch(1, multiprocessing_context="forkserver"))

    @alone
    def test_breaking_off_an_epoch(self):
        loader = adl.AdaptiveDataLoader(TensorDataset(torch.arange(100)), batch_size=10)
        counts = []
        for _ in adl.remaining_epochs_until(3):
            count = 0
            for _ in loader:
                count += 1
                if len(counts) == 1 and count == 4:
                    break
            counts.append(count)
        self.assertEqual(counts, [10, 4, 10])

    @alone
    def test_validation_loop_and_accumulator(self):
        x, y = data()
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        parallel = adl.AdaptiveDataParallel(model, optimizer)
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
        valid = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=64)
        sums = adl.Accumulator()
        for _ in adl.remaining_epochs_until(2):
            for inputs, targets in loader:
                torch.nn.functional.mse_loss(parallel(inputs), targets).backward()
                optimizer.step()
                sums["trained"] += len(inputs)
            with torch.no_grad():
                for inputs, targets in valid:
                    sums["error"] += (model(inputs) - targets).pow(2).sum()
                    sums["n"] += len(inputs)
            self.assertEqual(len(sums), 0)
            with sums.synchronized():
                self.assertEqual((sums["trained"], sums["n"]), (200, 200))
                torch.testing.assert_close(sums["error"], (model(x) - y).pow(2).sum(), rtol=1e-5, atol=0)
                sums.clear()
            again = adl.evaluate(lambda i: {"n": len(i), "sum": int(i.sum())}, 200, 64)
            self.assertEqual(again, {"n": 200, "sum": 199 * 100})
        with self.assertRaises(TypeError):
            sums["n"] = 3

    @alone
    def test_what_was_added_may_be_changed_afterwards(self):
        loader = adl.AdaptiveDataLoader(TensorDataset(torch.arange(30)), batch_size=10)
        sums = adl.Accumulator()
        counts = torch.zeros(2, requires_grad=True)
        listed = []
        for _ in adl.remaining_epochs_until(1):
            for number, _ in enumerate(loader):
                with torch.no_grad():
                    counts.fill_(number + 1)
                listed.append(number)
                sums["counts"] += counts
                sums["listed"] += listed
            listed.append(7)
            with sums.synchronized():
                self.assertEqual(sums["counts"].tolist(), [6, 6])
                self.assertFalse(sums["counts"].requires_grad)
                self.assertEqual(sums["listed"], [0, 0, 1, 0, 1, 2])

    def test_what_belongs_to_no_step_counts_also_after_one_that_was_dropped(self):
        sums = Sums()
        sums.begin_microbatch()
        sums.add("a", "n", 1)
        sums.drop_step()
        sums.add("a", "n", 1)
        sums.add_beside_steps("b", {"n": 1})
        sums.merge([sums.own_part()])
        self.assertEqual(sums.shared, {"b": {"n": 1}})

    def test_a_replica_that_has_added_nothing_sends_nothing_and_merges_with_the_others(self):
        here, there = Sums(), Sums()
        self.assertEqual(here.own_part(), b"")
        there.add("a", "n", 3)
        parts = [here.own_part(), there.own_part()]
        for sums in (here, there):
            sums.asking = ((0, 1, 0), "a")
            sums.merge(parts)
            self.assertEqual((sums.shared, sums.merges, sums.own_part()), ({"a": {"n": 3}}, 1, b""))
            self.assertEqual(sums.result((0, 1, 0), "a"), {"n": 3})

    @alone
    def test_the_training_loader_is_read_again_in_its_epoch(self):
        x, y = data()
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        parallel = adl.AdaptiveDataParallel(model, optimizer)
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
        for _ in adl.remaining_epochs_until(2):
            for inputs, targets in loader:
                torch.nn.functional.mse_loss(parallel(inputs), targets).backward()
                optimizer.step()
            seen = [row for inputs, _ in loader for row in inputs[:, 0].tolist()]
            self.assertEqual(sorted(seen), sorted(x[:, 0].tolist()))
            with self.assertRaisesRegex(espalier.UsageError, "without a batch"):
                for inputs, targets in loader:
                    optimizer.step()
        self.assertEqual(parallel.steps, 20)

    @alone
    def test_loops_after_the_last_epoch(self):
        loader = adl.AdaptiveDataLoader(TensorDataset(torch.arange(100)), batch_size=10, shuffle=True)
        test = adl.AdaptiveDataLoader(TensorDataset(torch.arange(30)), batch_size=10)
        with self.assertRaisesRegex(espalier.UsageError, "remaining_epochs_until"):
            next(iter(test))
        for _ in adl.remaining_epochs_until(2):
            for _ in loader:
                pass
        sums = adl.Accumulator()
        for numbers, in test:
            sums["n"] += len(numbers)
        with sums.synchronized():
            self.assertEqual(sums["n"], 30)
        with self.assertRaisesRegex(espalier.UsageError, "remaining_epochs_until"):
            next(iter(loader))

    @alone
    def test_the_data_set_is_the_programs_own(self):
        class Level(Dataset):
            level = 0

            def __len__(self):
                return 8

            def __getitem__(self, index):
                return self.level

        class Whole(Level):
            def __getitems__(self, indices):
                return [self.level for _ in indices]

        def set_level(_):
            torch.utils.data.get_worker_info().dataset.level += 1

        own = Level()
        loader = adl.AdaptiveDataLoader(own, batch_size=8, training=True)
        self.assertIs(loader.dataset, own)
        by_workers = adl.AdaptiveDataLoader(own, batch_size=8, num_workers=1, worker_init_fn=set_level)
        at_once = adl.AdaptiveDataLoader(Whole(), batch_size=8, seed_samples=True)
        for epoch in adl.remaining_epochs_until(3):
            loader.dataset.level = 10 * epoch
            self.assertEqual([level.tolist() for level in loader], [[10 * epoch] * 8])
            self.assertEqual([level.tolist() for level in by_workers], [[10 * epoch + 1] * 8])
            self.assertEqual([level.tolist() for level in at_once], [[0] * 8])

    @alone
    def test_epochs_that_are_left_are_finished(self):
        adl.AdaptiveDataLoader(TensorDataset(torch.arange(10)), batch_size=10)
        self.assertEqual(adl.finished_epochs(), 0)
        for epoch in adl.remaining_epochs_until(3):
            self.assertEqual(adl.finished_epochs(), epoch)
            if epoch == 1:
                break
        self.assertEqual((adl.finished_epochs(), adl.current_epoch()), (2, None))
        with self.assertRaises(KeyError):
            for epoch in adl.remaining_epochs_until(5):
                raise KeyError(epoch)
        self.assertEqual(adl.finished_epochs(), 3)
        self.assertEqual(list(adl.remaining_epochs_until(5)), [3, 4])
        self.assertEqual(adl.finished_epochs(), 5)


class Checkpoints(unittest.TestCase):
    class Count(espalier.State):
        def __init__(self):
            super().__init__("count")
            self.value = 0

        def save(self, fileobj):
            fileobj.write(str(self.value).encode())

        def load(self, fileobj):
            self.value = int(fileobj.read())

    def net(self):
        """Small tensors and large ones, which are handed over apart from the others, and one in another order."""
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(6, 4096), torch.nn.Tanh(), torch.nn.Linear(4096, 6), net())
        model[0].weight.data = model[0].weight.data.t().contiguous().t()
        return model

    def program(self, epochs):
        x, y = data()
        model = self.net()
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        parallel = adl.AdaptiveDataParallel(model, optimizer, schedule)
        loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
        count = self.Count()
        for epoch in adl.remaining_epochs_until(epochs):
            for inputs, targets in loader:
                torch.nn.functional.mse_loss(parallel(inputs), targets).backward()
                optimizer.step()
            schedule.step()
            count.value = 10 * (epoch + 1)
        espalier.trial().finish()  # waits for what is being written
        return model, optimizer, schedule, count

    @alone
    def test_torch_load_reads_them_and_training_goes_on_from_them(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["ESPALIER_CHECKPOINT_DIR"] = folder
            if (child := os.fork()) == 0:
                self.program(3)
                os._exit(0)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            newest = max(pathlib.Path(folder).glob("step-*.pt"), key=lambda p: int(p.stem.split("-")[1]))
            read = torch.load(newest)  # weights_only, as is its default
            self.assertEqual(sorted(read), ["espalier", "model", "optimizer", "states"])
            plain = self.net()
            plain.load_state_dict(read["model"])
            torch.optim.Adam(plain.parameters()).load_state_dict(read["optimizer"])
            self.assertEqual(read["states"]["count"], b"30")

            os.environ["ESPALIER_CHECKPOINT"] = str(newest)
            if (child := os.fork()) == 0:
                model, optimizer, schedule, count = self.program(3)  # all done: what was loaded
                assert torch.equal(values(model), values(plain))
                assert schedule.get_last_lr() == [0.01 / 8], schedule.get_last_lr()
                assert count.value == 30
                os._exit(0)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            # As if it had never been interrupted.
            if (child := os.fork()) == 0:
                torch.save(values(self.program(5)[0]), folder + "/resumed")
                os._exit(0)
            os.waitpid(child, 0)
            del os.environ["ESPALIER_CHECKPOINT"]
            straight = self.program(5)[0]
            self.assertTrue(torch.equal(values(straight), torch.load(folder + "/resumed")))

    @alone
    def test_what_shares_memory_is_in_them_once_and_shares_it_again(self):
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.into = torch.nn.Linear(6, 300)
                self.out = torch.nn.Linear(300, 6)
                self.again = torch.nn.Linear(6, 300)
                self.again.weight = self.into.weight
                self.register_buffer("all", torch.arange(12.0))
                self.register_buffer("odd", self.all[1::2])
                self.register_buffer("none", torch.empty(0))
                self.register_buffer("flag", torch.tensor(True))

            def forward(self, x):
                return self.out(self.again(self.out(self.into(x))))

        with tempfile.TemporaryDirectory() as folder:
            os.environ["ESPALIER_CHECKPOINT_DIR"] = folder
            x, y = data()
            model = Tied()
            optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
            parallel = adl.AdaptiveDataParallel(model, optimizer)
            loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=20)
            for epoch in adl.remaining_epochs_until(1):
                for inputs, targets in loader:
                    torch.nn.functional.mse_loss(parallel(inputs).sum(1, keepdim=True), targets).backward()
                    optimizer.step()
            espalier.trial().finish()
            file = next(pathlib.Path(folder).glob("step-*.pt"))
            read = torch.load(file)["model"]
            self.assertEqual(sorted(read), sorted(model.state_dict()))
            for name, tensor in model.state_dict().items():
                self.assertTrue(torch.equal(read[name], tensor), name)
                self.assertEqual(read[name].stride(), tensor.stride(), name)

            def memory(name):
                return read[name].untyped_storage().data_ptr()

            self.assertEqual(memory("into.weight"), memory("again.weight"))
            self.assertEqual(memory("all"), memory("odd"))
            with zipfile.ZipFile(file) as records:
                counts = [int(name.split("/")[-1]) for name in records.namelist() if "/data/" in name]
            # Of six of the model's own and the momentum of five parameters.
            self.assertEqual(sorted(counts), list(range(8 + 5)))

    @alone
    def test_another_programs_checkpoint_is_refused_by_name(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["ESPALIER_CHECKPOINT_DIR"] = folder
            if (child := os.fork()) == 0:
                self.program(1)
                os._exit(0)
            os.waitpid(child, 0)
            os.environ["ESPALIER_CHECKPOINT"] = str(next(pathlib.Path(folder).glob("*.pt")))
            model = torch.nn.Linear(6, 1)
            adl.AdaptiveDataParallel(model, torch.optim.SGD(model.parameters(), 0.1))
            adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=20)
            with self.assertRaisesRegex(espalier.EspalierError, "does not fit this program"):
                next(adl.remaining_epochs_until(1))


class Refused(unittest.TestCase):
    """Said where the mistake is made, and by name; the interpreter lives on."""

    def expect(self, error, pattern, call):
        with self.assertRaisesRegex(error, pattern):
            call()

    @alone
    def test_models_and_optimizers(self):
        model = net()
        sgd = torch.optim.SGD(model.parameters(), 0.1)
        wrap = adl.AdaptiveDataParallel
        self.expect(espalier.UsageError, "LBFGS", lambda: wrap(model, torch.optim.LBFGS(model.parameters())))
        sparse = torch.nn.Embedding(3, 4, sparse=True)
        self.expect(espalier.UsageError, "sparse",
                    lambda: wrap(sparse, torch.optim.SGD(sparse.parameters(), 0.1)))
        self.expect(espalier.UsageError, "DataParallel", lambda: wrap(torch.nn.DataParallel(model), sgd))
        self.expect(espalier.UsageError, r"shape \(3,\)",
                    lambda: wrap(model, torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], 0.1)))
        self.expect(espalier.UsageError, "no_such_option", lambda: wrap(model, sgd, no_such_option=1))
        self.expect(espalier.UsageError, 'scaling rule "cubic" is unknown',
                    lambda: wrap(model, sgd, scaling_rule="cubic"))

    @alone
    def test_a_wrapped_model_is_not_copied(self):
        import copy
        model = net()
        wrapped = adl.AdaptiveDataParallel(model, torch.optim.SGD(model.parameters(), 0.1))
        self.expect(espalier.UsageError, "copy or save its .module", lambda: copy.deepcopy(wrapped))
        self.expect(espalier.UsageError, "copy or save its .module", lambda: torch.save(wrapped, io.BytesIO()))
        torch.save(wrapped.state_dict(), io.BytesIO())

    @alone
    def test_a_world_without_an_agent(self):
        adl.init_process_group("gloo", init_method="tcp://127.0.0.1:1", world_size=1, rank=0)
        self.expect(espalier.UsageError, "world_size is 4", lambda: adl.init_process_group("gloo", world_size=4))

    @alone
    def test_loaders(self):
        dataset = TensorDataset(torch.arange(10))
        load = adl.AdaptiveDataLoader
        self.expect(ValueError, "sampler", lambda: load(dataset, sampler=[1]))
        self.expect(espalier.UsageError, "batch_size is 0", lambda: load(dataset, batch_size=0))
        self.expect(espalier.UsageError, "empty", lambda: load(TensorDataset(torch.arange(0))))
        loader = load(dataset, batch_size=4)
        self.expect(ValueError, "max_batch_size", lambda: loader.autoscale_batch_size(2))
        self.expect(espalier.UsageError, "within a loop over epochs.*adl.epochs.*remaining_epochs_until.*"
                    r"loader.collate_fn\(\[dataset\[0\]\]\)", lambda: next(iter(loader)))
        self.assertEqual(loader.collate_fn([dataset[0]])[0].tolist(), [0])
        for _ in adl.remaining_epochs_until(1):
            self.expect(RuntimeError, "overlapping", lambda: next(adl.remaining_epochs_until(2)))
            for _ in loader:
                self.expect(RuntimeError, "overlapping", lambda: next(iter(loader)))
                break
            self.expect(espalier.UsageError, "made after training began", lambda: load(dataset, training=True))

    @alone
    def test_groups_that_are_added_after_the_wrap(self):
        model = net()
        first, *rest = model.parameters()
        optimizer = torch.optim.SGD([first], 0.1)
        optimizer.add_param_group({"params": rest[:1]})
        adl.AdaptiveDataParallel(model, optimizer)
        with self.assertRaisesRegex(espalier.UsageError, "add_param_group after the optimizer was wrapped.*frozen after the wrap"):
            optimizer.add_param_group({"params": rest[1:]})

    @alone
    def test_a_loop_that_is_run_a_second_time(self):
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        adl.AdaptiveDataParallel(model, optimizer)
        loader = adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=20)
        next(adl.remaining_epochs_until(1))
        with self.assertRaisesRegex(espalier.UsageError, "AdaptiveDataParallel .* In a notebook restart the kernel"):
            adl.AdaptiveDataParallel(model, optimizer)
        with self.assertRaisesRegex(espalier.UsageError, "AdaptiveDataLoader.* In a notebook restart the kernel"):
            adl.AdaptiveDataLoader(loader.dataset, batch_size=20, training=True)

    @alone
    def test_steps_out_of_place(self):
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        parallel = adl.AdaptiveDataParallel(model, optimizer)
        adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=20)
        self.expect(espalier.UsageError, "without a batch", optimizer.step)
        self.expect(espalier.UsageError, "closure", lambda: optimizer.step(lambda: 1.0))
        self.expect(espalier.UsageError, "before the first epoch",
                    lambda: adl.evaluate(lambda i: {}, 10, 2))
        for _ in adl.remaining_epochs_until(1):
            self.expect(espalier.UsageError, "made after training began",
                        lambda: adl.AdaptiveDataParallel(model, optimizer))
        self.assertEqual(parallel.steps, 0)

    @alone
    def test_parameters_of_the_wrong_kind(self):
        import sys
        sys.argv += ["--set", "lr=high", "--set", "width=2.5", "--set", "deep=true", "--set", "n=3", "--set",
                     "depth=null"]
        trial = espalier.trial()
        self.assertEqual((trial["depth"], trial.get("depth", 8), trial.get("depth", "deep")), (None, None, None))
        self.expect(espalier.UsageError, 'parameter "lr" is \'high\', and must be of type float here',
                    lambda: trial.get("lr", 0.1))
        self.expect(espalier.UsageError, 'must be of type int here: a default of 8.0 makes it a float',
                    lambda: trial.get("width", 8))
        self.assertEqual((trial["n"], trial.get("width"), trial.get("absent", None)), (3, 2.5, None))
        self.expect(espalier.UsageError, 'parameter "absent" was not given: run the program with --set absent=VALUE, or '
                                         r'write trial\.get\("absent", DEFAULT\)', lambda: trial["absent"])
        self.assertIs(trial.get("deep", False), True)
        self.assertEqual(trial.get("n", 1.0), 3.0)
        self.assertEqual(trial.get("absent", "x"), "x")
        self.assertEqual(dict(trial.parameters)["n"], 3)

    @alone
    def test_parsed_arguments_are_defaults(self):
        import argparse
        import sys
        parser = argparse.ArgumentParser()
        for name, default in (("--lr", 0.1), ("--batch-size", 64), ("--gamma", 0.7), ("--rule", None), ("--width", 8)):
            parser.add_argument(name, type=type(default or ""), default=default)
        parser.add_argument("--deep", action="store_true")
        wanted = {"lr": 0.5, "batch_size": 32, "gamma": 0.9, "rule": "linear", "width": 8, "deep": True}
        sys.argv += ["--gamma", "0.9", "--batch-size", "16"]
        earlier = parser.parse_args()
        sys.argv += ["--set", "lr=0.5", "--set", "batch_size=32", "--set", "rule=linear", "--set", "deep=true"]
        trial = espalier.trial()
        for parsed in (parser.parse_args(), earlier):
            self.assertEqual(vars(trial.arguments(parsed)), wanted)
        self.assertEqual((earlier.lr, type(trial.arguments(earlier))), (0.1, argparse.Namespace))
        earlier.lr = 1
        self.expect(espalier.UsageError, 'parameter "lr" is 0.5, and must be of type int here: a default of 1.0 makes',
                    lambda: trial.arguments(earlier))
        for other in ({"lr": 0.1}, None, "--lr"):
            self.expect(espalier.UsageError, "arguments must be what parse_args.. returns, not .*, a "
                                             f"{type(other).__name__}", lambda: trial.arguments(other))

    @alone
    def test_two_states_of_one_name(self):
        espalier.State("mine")
        self.expect(ValueError, "'mine' already exists", lambda: espalier.State("mine"))
        self.expect(espalier.UsageError, "must be a name of letters", lambda: espalier.State("a b"))

class Prepared(unittest.TestCase):
    @alone
    def test_prepare_wraps_and_names_the_training_loader(self):
        # Unshuffled, so that nothing but prepare says that it is the one that trains.
        loader = adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=20, training=False)
        plain = net()
        before = values(plain)
        sgd = torch.optim.SGD(plain.parameters(), 0.1)
        model, optimizer, same = adl.prepare(plain, sgd, loader, max_gradient_norm=1.0)
        self.assertIs(optimizer, sgd)
        self.assertIs(same, loader)
        self.assertIs(model.module, plain)
        for _ in adl.epochs(1):
            for x, y in same:
                torch.nn.functional.mse_loss(model(x), y).backward()
                optimizer.step()
        self.assertEqual(model.steps, len(loader))
        self.assertFalse(torch.equal(values(plain), before))


class Schedules(unittest.TestCase):
    """Two replicas' ends of one schedule, which one of them hands to the other."""

    def replica(self, name):
        parameter = torch.nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.SGD([parameter], 1.0)
        run = types.SimpleNamespace(in_epoch=None, left_epoch=None, current_loader=None)
        plain = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        return run, optimizer, plain, Schedule(name, plain, run)

    def step(self, replica):
        if replica[3].admits():
            replica[1].step()
            replica[2].step()
        return replica[1].param_groups[0]["lr"]

    def hand_over(self, giver, taker):
        state = io.BytesIO()
        giver[3].save(state)
        state.seek(0)
        taker[3].load(state)
        taker[1].load_state_dict(giver[1].state_dict())  # where the rate itself is

    @alone
    def test_calls_that_the_giver_has_made_in_the_epoch_are_left_out(self):
        older, joiner = self.replica("older"), self.replica("joiner")
        older[0].in_epoch = 4
        self.step(older)  # before the loop over batches
        older[0].current_loader = "training"
        for _ in range(3):
            self.step(older)
        older[0].current_loader = None
        self.assertEqual(self.step(older), 0.5**5)
        self.hand_over(older, joiner)
        joiner[0].in_epoch = 4
        self.assertEqual(self.step(joiner), 0.5**5)
        self.assertEqual(self.step(joiner), 0.5**5)
        for replica in (older, joiner):
            self.assertEqual(self.step(replica), 0.5**6, "neither has made this one")
        for replica in (older, joiner):
            replica[0].in_epoch = 5
            self.assertEqual(self.step(replica), 0.5**7)

    @alone
    def test_what_is_handed_over_in_mid_epoch_has_no_calls_of_the_epoch_before(self):
        older, joiner = self.replica("older"), self.replica("joiner")
        older[0].in_epoch = 4
        self.step(older)
        older[0].in_epoch, older[0].current_loader = 5, "training"
        self.hand_over(older, joiner)
        joiner[0].in_epoch = 5
        self.assertEqual(self.step(joiner), 0.25)

    @alone
    def test_an_epoch_that_has_ended_is_that_of_its_last_calls(self):
        older, joiner = self.replica("older"), self.replica("joiner")
        older[0].in_epoch = 4
        self.step(older)
        older[0].in_epoch, older[0].left_epoch = None, 4
        self.hand_over(older, joiner)
        joiner[0].in_epoch = 4
        self.assertEqual(self.step(joiner), 0.5)
        joiner[0].in_epoch = 5
        self.assertEqual(self.step(joiner), 0.25)

    @alone
    def test_a_replica_that_has_fallen_behind_leaves_out_its_old_epoch(self):
        older, spare = self.replica("older"), self.replica("spare")
        older[0].in_epoch, spare[0].in_epoch = 7, 4
        self.hand_over(older, spare)
        self.assertEqual(self.step(spare), 1.0)
        spare[0].in_epoch = 7
        self.assertEqual(self.step(spare), 0.5)


if __name__ == "__main__":
    unittest.main()
