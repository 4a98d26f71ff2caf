"""Steps that a LightningModule takes by itself: manual optimization."""
import contextlib
import functools
import types

import torch

import espalier.torch as adl
from espalier import _library
from espalier.errors import UsageError


class ManualSteps:
    """Each optimizer is a model of its own to the group: when one is stepped, its gradients are those of all samples, and what
    comes after in the batch sees the parameters that it has left. All replicas step alike, by the order of `optimizers`, each
    once for each batch or not at all.

    A backward pass reduces what it brings; what the module zeroes before it steps is dropped, as in a plain loop.
    A batch starts afresh, so that gradients of an earlier one are refused where the module would have stepped with them.
    """

    def __init__(self, module, optimizers, schedulers, scaler, scaling_rule, order):
        order = _checked_order(order, len(optimizers))
        _refuse_parameters(module, optimizers)
        self._indices = order  # as configure_optimizers gives them
        self._optimizers = [optimizers[index] for index in order]
        self._trained = [[p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
                         for optimizer in self._optimizers]
        self._models = []
        self.steps = 0         # of all optimizers, which all replicas agree about
        self._due = None       # the optimizer that steps next; None: outside of a batch
        self._stepped = []     # in this batch, by place
        for place, (index, optimizer) in enumerate(zip(order, self._optimizers)):
            own = [scheduler for scheduler in schedulers if scheduler.optimizer is optimizer]
            # The first has the whole module with its buffers, the others what they train.
            model = torch.nn.ParameterList(self._trained[place]) if index else module
            name = {"name": f"optimizer-{index}"} if index else {}
            self._models.append(adl.AdaptiveDataParallel(model, optimizer, own, None if index else scaler, scaling_rule,
                                                         **name))
            self._take_over(place, optimizer)
        # One parameter of each tells whether the module has zeroed it.
        self._probes = [min(trained, key=torch.Tensor.numel) for trained in self._trained]
        self._carried = [False] * len(order)  # has a gradient that was stepped with, or is of an earlier batch
        self._left = [[] for _ in order]      # gradients and their versions, as they were when they were last looked at

    @property
    def first(self):
        """The wrapper of the module."""
        return self._models[self._indices.index(0)]

    def dropped(self):
        """Whether this batch came to nothing here: it is done again, or others have done it."""
        return self._models[-1].outcome == _library.DROPPED

    def _take_over(self, place, optimizer):
        """What the module calls: a step also takes that of those which are passed over."""
        inner = optimizer.step

        @functools.wraps(inner)
        def step(_self, closure=None):
            if closure is not None:
                raise UsageError("ElasticTrainer: a plain optimizer's step(closure): run manual_backward before, and step "
                                 "without a closure; or step that of self.optimizers()")
            self._step(place, inner)

        optimizer.step = types.MethodType(step, optimizer)

    # ---- a batch

    def before_batch(self):
        """Before the loader gives it, and forgets all gradients."""
        self._look()

    def begin_batch(self):
        self._due, self._stepped = 0, []
        for place in range(len(self._models)):
            self._mark(place)

    def end_batch(self):
        if self._due is None:
            return
        self._look()
        for place in self._stepped:
            self._carry(place)
        self._pass_over(len(self._models))
        self._due = None

    def before_backward(self):
        self._look()

    def after_backward(self):
        for place, trained in enumerate(self._trained):
            if self._carried[place] and self._probes[place].grad is None:  # lost with a group, and not by the module
                self._mark(place)
            self._note(place, trained)

    def count(self, optimizer):
        """After `optimizer.step()`, also one that loss scaling has left out."""
        place = next(place for place, own in enumerate(self._optimizers) if own is optimizer)
        if self._models[place].outcome not in (_library.DROPPED, _library.ACCUMULATED):
            self.steps += 1

    def _step(self, place, inner):
        index = self._indices[place]
        if self._due is None:
            raise UsageError(f"ElasticTrainer: optimizer {index} was stepped outside of training_step: step it there")
        if place in self._stepped:
            raise UsageError(f"ElasticTrainer: training_step stepped optimizer {index} twice: want once for each batch, for "
                             "which its gradients are brought together")
        if place < self._due:
            last = self._indices[self._stepped[-1]]
            order = [i for i in self._indices if i != index]
            order.insert(order.index(last) + 1, index)
            raise UsageError(f"ElasticTrainer: training_step stepped optimizer {index} after optimizer {last}: want the order "
                             f"of configure_optimizers, or ElasticTrainer(step_order={order})")
        self._look()
        if self._carried[place]:
            raise UsageError(f"ElasticTrainer: optimizer {index} is stepped with gradients of an earlier batch, and each batch "
                             "starts afresh: want its zero_grad() before manual_backward, and toggle_optimizer where the loss "
                             "of another would leave it gradients. To step after several batches take a larger batch_size")
        self._pass_over(place)
        with _as_wrapped(self._trained):
            inner()
        self._due = place + 1
        self._stepped.append(place)
        self._carried[place] = True
        self._mark(place)

    def _pass_over(self, until):
        """The group's step of what this batch does not step: nothing changes."""
        for place in range(self._due, until):
            self._carry(place)
            trained = self._models[place]._trained
            trained.take_step = trained.leave_step_out
            try:
                with _as_wrapped(self._trained):
                    trained._step(0)
            finally:
                del trained.take_step
            self._mark(place)
        self._due = max(self._due, until)

    # ---- what the module zeroes

    def _carry(self, place):
        """What is there and has not been zeroed would be added to in the next batch."""
        self._carried[place] = self._carried[place] or any(p.grad is not None for p in self._trained[place])

    def _mark(self, place):
        """Where the group has taken a gradient away that the module still has: there is one to be zeroed."""
        if self._carried[place]:
            probe = self._probes[place]
            probe.grad = torch.zeros_like(probe)
            self._note(place, [probe])
        else:
            self._left[place] = []

    def _note(self, place, parameters):
        self._left[place] = [(p, p.grad, p.grad._version) for p in parameters if p.grad is not None]

    def _look(self):
        """Finds what was zeroed since, in whatever way."""
        for place, left in enumerate(self._left):
            zeroed = False
            for p, gradient, version in left:
                if p.grad is None:
                    zeroed = True
                elif p is self._probes[place] and self._carried[place] and gradient._version != version:
                    if not gradient.any():  # in place
                        zeroed = True
                        p.grad = None if self._due is None or place < self._due else p.grad
            if zeroed:
                self._carried[place] = False
                self._left[place] = [of for of in left if of[0].grad is not None]


@contextlib.contextmanager
def _as_wrapped(trained):
    """Where the group may change, its parameters require gradients, whatever toggle_optimizer has done."""
    off = [p for each in trained for p in each if not p.requires_grad]
    for p in off:
        p.requires_grad_(True)
    try:
        yield
    finally:
        for p in off:
            p.requires_grad_(False)


def _checked_order(order, count):
    if count == 0:
        raise UsageError("ElasticTrainer: configure_optimizers gives no optimizer: want one or several")
    order = list(range(count)) if order is None else list(order)
    if sorted(order) != list(range(count)):
        raise UsageError(f"ElasticTrainer: step_order is {order}, and configure_optimizers gives {count} optimizers: want each "
                         f"of {list(range(count))} once")
    return order


def _refuse_parameters(module, optimizers):
    names = {id(p): name for name, p in module.named_parameters()}
    seen = {}
    for index, optimizer in enumerate(optimizers):
        if not any(p.requires_grad for group in optimizer.param_groups for p in group["params"]):
            raise UsageError(f"ElasticTrainer: optimizer {index} has no parameters that require gradients")
        for group in optimizer.param_groups:
            for p in group["params"]:
                name = names.get(id(p))
                if name is None:
                    raise UsageError(f"ElasticTrainer: optimizer {index} has a parameter of shape {tuple(p.shape)} that is not "
                                     "the module's: make it an attribute of the module")
                if id(p) in seen:
                    raise UsageError(f"ElasticTrainer: {name} is trained by optimizers {seen[id(p)]} and {index}: want one for "
                                     "each parameter")
                if p.requires_grad and p.dtype != torch.float32:
                    raise UsageError(f"ElasticTrainer: {name} is of {p.dtype}, and the module has "
                                     'automatic_optimization=False: want float32, and precision="bf16-mixed" for speed')
                seen[id(p)] = index
