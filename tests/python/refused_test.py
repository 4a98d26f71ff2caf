"""What is refused with the name of the thing and what would be right: models and optimizers at the wrap, steps in the
wrong loop, processes that are forked, and what cannot be pickled."""
import os
import pickle
import tempfile
import threading
import unittest

import torch
from torch.utils.data import TensorDataset

import espalier
import espalier.torch as adl
from espalier import checkpoint
from forked import alone
from small_program import data, make, mse, net, sgd, standard_error, train


class AtTheWrap(unittest.TestCase):
    def expect(self, error, pattern, call):
        with self.assertRaisesRegex(error, pattern):
            call()

    @alone
    def test_what_is_of_another_kind(self):
        model = net()
        optimizer = sgd(model.parameters())
        wrap = adl.AdaptiveDataParallel
        self.expect(espalier.UsageError, "model is of type SGD: want a torch.nn.Module", lambda: wrap(optimizer, model))
        self.expect(espalier.UsageError, 'optimizer is .*: want a torch.optim.Optimizer', lambda: wrap(model, "sgd"))
        self.expect(espalier.UsageError, "lr_scheduler is 'cosine': want a schedule", lambda: wrap(model, optimizer, "cosine"))
        self.expect(espalier.UsageError, "lr_scheduler is of type GradScaler: .*a GradScaler is mp_scaler",
                    lambda: wrap(model, optimizer, torch.amp.GradScaler("cpu")))
        self.expect(espalier.UsageError, "mp_scaler is 2.0: want a GradScaler", lambda: wrap(model, optimizer, mp_scaler=2.0))
        wrap(model, optimizer)
        self.expect(espalier.UsageError, r"there is already one named .*name=\"critic\"", lambda: wrap(model, optimizer))
        dataset = TensorDataset(*data(30))
        loader = adl.AdaptiveDataLoader
        self.expect(espalier.UsageError, "in_order is False", lambda: loader(dataset, num_workers=2, in_order=False))
        for bounds in (8, (32,)):
            self.expect(espalier.UsageError, "local_bsz_bounds is .*: want two numbers",
                        lambda: loader(dataset, local_bsz_bounds=bounds))
        for epochs in (2.5, "3", None, float("inf")):
            self.expect(espalier.UsageError, "the number of epochs is .*: want a whole number", lambda: next(adl.epochs(epochs)))
        self.assertEqual(list(adl.epochs(2.0)), [1, 2], "as a parameter may be")

    @alone
    def test_sparse_bags_and_what_others_divide(self):
        import torch.distributed as dist
        from torch.distributed import fsdp
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import distribute_tensor

        def wrap(model):
            adl.AdaptiveDataParallel(model, torch.optim.SGD(model.parameters(), 0.1))
        self.expect(espalier.UsageError, "EmbeddingBag with sparse gradients: want sparse=False",
                    lambda: wrap(torch.nn.EmbeddingBag(3, 4, sparse=True)))
        dist.init_process_group("gloo", store=dist.HashStore(), world_size=1, rank=0)
        mesh = init_device_mesh("cpu", (1,))
        first = fsdp.FullyShardedDataParallel(net(), device_id=torch.device("cpu"))
        self.expect(espalier.UsageError, "a FullyShardedDataParallel in it.*plain module", lambda: wrap(first))
        second = net()
        fsdp.fully_shard(second, mesh=mesh)
        self.expect(espalier.UsageError, "a FSDPSequential in it, whose parameters FSDP has divided",
                    lambda: wrap(second))
        third = net()
        third[2].weight = torch.nn.Parameter(distribute_tensor(third[2].weight.detach(), mesh))
        self.expect(espalier.UsageError, 'parameter "2.weight" is a DTensor', lambda: wrap(third))

    @alone
    def test_what_knows_nothing_of_bringing_gradients_together(self):
        model = net()
        sgd = torch.optim.SGD(model.parameters(), 0.1)
        hook = model[2].bias.register_post_accumulate_grad_hook(lambda p: None)
        self.expect(espalier.UsageError, 'parameter "2.bias" has a hook by register_post_accumulate_grad_hook',
                    lambda: adl.AdaptiveDataParallel(model, sgd))
        hook.remove()
        with torch._dynamo.config.patch(compiled_autograd=True):
            self.expect(espalier.UsageError, "compiled_autograd is on.*want it off",
                        lambda: adl.AdaptiveDataParallel(model, sgd))
        adl.AdaptiveDataParallel(model, sgd)


class Table(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(7, 1))

    def forward(self, x):
        return torch.nn.functional.embedding((x[:, 0].abs() * 3).long() % 7, self.table, sparse=True)


class InTheLoop(unittest.TestCase):
    def refuse_sparse(self, **options):
        _, optimizer, parallel, loader = make(Table(), **options)
        with self.assertRaisesRegex(RuntimeError, r'the gradient of parameter "table" of shape \[7, 1\] is sparse.*'
                                                  "want sparse=False"):
            train(optimizer, parallel, loader)

    @alone
    def test_a_sparse_gradient(self):
        self.refuse_sparse()

    @alone
    def test_a_sparse_gradient_of_a_piece(self):
        self.refuse_sparse(loader={"local_bsz_bounds": (None, 10)})

    @alone
    def test_steps_in_the_loop_of_a_loader_that_is_made_in_each_epoch(self):
        model = net()
        optimizer = sgd(model.parameters())
        parallel = adl.AdaptiveDataParallel(model, optimizer)
        with self.assertRaisesRegex(espalier.UsageError, "this loader was made after training began, and there was no "
                                                         "loader when training began: make the training loader once, "
                                                         "before the loop over epochs"):
            for _ in adl.epochs(1):
                loader = adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=20, shuffle=True)
                for x, y in loader:
                    mse(parallel(x), y).backward()
                    optimizer.step()

    def expect_unknown_schedule(self, make_schedule):
        optimizer, parallel, loader = make()[1:]
        make_schedule(optimizer)
        with self.assertRaisesRegex(espalier.UsageError, "the SGD has a learning-rate schedule that was not given: .*pass it"):
            train(optimizer, parallel, loader)

    @alone
    def test_a_schedule_that_is_made_after_the_wrap(self):
        self.expect_unknown_schedule(lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 0.5))

    @alone
    def test_a_schedule_that_was_made_before_and_not_given(self):
        model = net()
        optimizer = sgd(model.parameters())
        torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        parallel = adl.AdaptiveDataParallel(model, optimizer)
        loader = adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=20)
        with self.assertRaisesRegex(espalier.UsageError, "the SGD has a learning-rate schedule that was not given"):
            train(optimizer, parallel, loader)

    @alone
    def test_a_gradient_that_is_set_after_backward(self):
        model = net()
        model.append(torch.nn.Linear(1, 1))  # which the loss does not see
        optimizer, _, loader = make(model)[1:]
        with self.assertRaisesRegex(espalier.UsageError, 'the gradient of parameter "3.weight" was set after backward'):
            for _ in adl.epochs(1):
                for x, y in loader:
                    mse(model[:3](x), y).backward()
                    model[3].weight.grad = torch.ones(1, 1)
                    optimizer.step()

    @alone
    def test_a_gradient_that_is_set_between_two_backward_passes(self):
        model = net()
        model.append(torch.nn.Linear(1, 1))
        _, _, loader = make(model)[1:]
        with self.assertRaisesRegex(RuntimeError, 'the gradient of parameter "3.weight" was set after backward'):
            for _ in adl.epochs(1):
                for x, y in loader:
                    mse(model[:3](x), y).backward()
                    model[3].weight.grad = torch.ones(1, 1)
                    mse(model[:3](x), y).backward()

    @alone
    def test_a_state_without_a_name(self):
        class Best(espalier.State):
            def __init__(self):
                self.best = 0

        class Named(Best):
            def __init__(self):
                super().__init__()
                espalier.State.__init__(self, "best")

        with self.assertRaisesRegex(espalier.UsageError, r"Best is a State without a name.*super\(\).__init__\(name\)"):
            Best()
        self.assertEqual(Named().best, 0)

    @alone
    def test_an_evaluation_between_a_batch_and_its_step(self):
        _, optimizer, parallel, loader = make()
        with self.assertRaisesRegex(espalier.UsageError, r"synchronized\(\) ends the batch: want it after the step"):
            for _ in adl.epochs(1):
                for x, y in loader:
                    adl.evaluate(lambda indices: {"count": len(indices)}, 10, 10)
                    mse(parallel(x), y).backward()
                    optimizer.step()

    @alone
    def test_sums_that_are_read_outside(self):
        sums = adl.Accumulator()
        sums["n"] += 1
        for read in (lambda n: n == 3, lambda n: n / 2, lambda n: 2 * n, float, bool, str, "{:.3f}".format, lambda n: n < 1,
                     lambda n: 1 + n, lambda n: torch.ones(()) * n):
            with self.assertRaisesRegex(TypeError, r"cannot be read outside of synchronized\(\): want accum\['n'\] within it"):
                read(sums["n"])

    @alone
    def test_steps_in_the_loop_of_another_loader(self):
        _, optimizer, parallel, loader = make()
        other = adl.AdaptiveDataLoader(TensorDataset(*data(30)), batch_size=20)
        with self.assertRaisesRegex(espalier.UsageError, "this loop is over another, which is an evaluation, and the "
                                                         "training loader is the one of 200 samples.*training=True"):
            train(optimizer, parallel, other)

    @alone
    def test_steps_in_a_second_loop_of_an_epoch(self):
        _, optimizer, parallel, loader = make()
        with self.assertRaisesRegex(espalier.UsageError, "without a batch of the training loader: this is "
                                                         "the second loop over it in one epoch"):
            for _ in adl.epochs(1):
                for _ in range(2):
                    for x, y in loader:
                        mse(parallel(x), y).backward()
                        optimizer.step()
        self.assertEqual(parallel.steps, 10)

    @alone
    def test_a_forked_process_reads_the_trial_and_does_nothing_for_it(self):
        _, optimizer, parallel, loader = make()
        train(optimizer, parallel, loader)
        if (child := os.fork()) == 0:
            refused = 0
            for call in (lambda: espalier.trial().report(1, 2.0), lambda: next(adl.epochs(3)), optimizer.step,
                         espalier.trial().finish):
                try:
                    call()
                except espalier.UsageError as error:
                    refused += "this process was forked from the trial's" in str(error)
            trial = espalier.trial()
            os._exit(0 if refused == 4 and (trial.number, trial.get("lr", 3), parallel.replicas) == (0, 3, 1) else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        espalier.trial().report(1, 2.0)


class Unpicklable(unittest.TestCase):
    """What checkpoints and joining replicas cannot take is named."""

    def train(self, prepare):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["ESPALIER_CHECKPOINT_DIR"] = folder
            model = net()
            optimizer = sgd(model.parameters())
            parallel = prepare(model, optimizer) or adl.AdaptiveDataParallel(model, optimizer)
            optimizer = parallel._trained._optimizers[0]
            train(optimizer, parallel, adl.AdaptiveDataLoader(TensorDataset(*data()), batch_size=20))

    def expect(self, pattern, prepare):
        """When training begins."""
        with self.assertRaisesRegex(espalier.EspalierError, pattern):
            self.train(prepare)

    def expect_without_checkpoint(self, pattern, prepare):
        with standard_error() as written:
            self.train(prepare)
        self.assertRegex(written[0], "checkpoint of step 10: UsageError: " + pattern)

    @alone
    def test_a_group_of_an_optimizer(self):
        def prepare(_, optimizer):
            optimizer.param_groups[0]["when"] = [lambda: 1]
        self.expect(r"the state of optimizer 0 \(SGD\) cannot be pickled, .*: \['param_groups'\]\[0\]\['when'\]\[0\] "
                    r"is <function .*, a function .*: leave it out", prepare)

    @alone
    def test_the_state_of_an_optimizer(self):
        class Odd(torch.optim.SGD):
            def step(self, closure=None):
                super().step(closure)
                self.state[self.param_groups[0]["params"][1]]["lock"] = threading.Lock()

        def prepare(model, _):
            return adl.AdaptiveDataParallel(model, Odd(model.parameters(), 0.01), name="first")
        self.expect_without_checkpoint(r"the state_dict\(\) of optimizer.first cannot be pickled.*: "
                                       r"\['state'\]\[1\]\['lock'\] is <unlocked _thread.lock .*, a lock", prepare)

    @alone
    def test_a_models_extra_state(self):
        class WithLock(torch.nn.Linear):
            def get_extra_state(self):
                return {"lock": threading.Lock()}

            def set_extra_state(self, state):
                pass

        def prepare(model, _):
            model.append(WithLock(1, 1))
        self.expect(r"the state_dict\(\) of model cannot be pickled.*'3._extra_state'\]\['lock'\] is <unlocked", prepare)

    @alone
    def test_a_schedule(self):
        class Odd(torch.optim.lr_scheduler.ConstantLR):
            def state_dict(self):
                return {**super().state_dict(), "odd": lambda: 1}
        self.expect(r"the state_dict\(\) of the Odd cannot be pickled.*\['odd'\] is <function",
                    lambda model, optimizer: adl.AdaptiveDataParallel(model, optimizer, Odd(optimizer)))

    @alone
    def test_a_state(self):
        class Mine(espalier.State):
            def save(self, fileobj):
                pickle.dump({"a": lambda: 1}, fileobj)

        def prepare(model, optimizer):
            Mine("mine")
        self.expect(r'State "mine": its save\(\) cannot pickle what it writes.*want plain values', prepare)

    @alone
    def test_other_errors_of_a_states_save_are_its_own(self):
        class Mine(espalier.State):
            def save(self, fileobj):
                raise TypeError("of my own")
        Mine("mine")
        with self.assertRaisesRegex(TypeError, "^of my own$"):
            checkpoint.saved("mine")


if __name__ == "__main__":
    unittest.main()
