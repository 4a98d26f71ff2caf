"""What cannot be trained, said where it is wrapped."""
import warnings
import weakref

import torch
from torch.optim import optimizer as of_torch

from espalier.errors import UsageError

_watch = None  # what torch calls before steps of optimizers


def refuse_types(model, optimizers, schedules, scaler):
    """Of what AdaptiveDataParallel is given, by name and class."""
    def check(name, thing, right, want):
        if not right:
            raise UsageError(f"AdaptiveDataParallel: {name} is {_kind(thing)}: want {want}")

    check("model", model, isinstance(model, torch.nn.Module), "a torch.nn.Module")
    for optimizer in optimizers:
        check("optimizer", optimizer, isinstance(optimizer, torch.optim.Optimizer),
              "a torch.optim.Optimizer, or a list of them")
    for schedule in schedules:
        scales = isinstance(schedule, torch.amp.GradScaler)
        check("lr_scheduler", schedule, hasattr(schedule, "step") and hasattr(schedule, "state_dict") and not scales,
              "a schedule of torch.optim.lr_scheduler, or a list of them" + ("; a GradScaler is mp_scaler" if scales else ""))
    check("mp_scaler", scaler, scaler is None or all(hasattr(scaler, name) for name in ("scale", "state_dict")),
          "a GradScaler")


def _kind(thing):
    return repr(thing) if isinstance(thing, (str, int, float)) else f"of type {type(thing).__name__}"


def refuse_schedules_elsewhere(optimizer, given):
    """Schedules leave a mark on the step() of their optimizer. One that was not given would begin anew where a replica joins
    or the trial goes on, and replicas' rates would differ from then on."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched") and not any(
            getattr(schedule, "optimizer", optimizer) is optimizer for schedule in given):
        raise UsageError(f"AdaptiveDataParallel: the {type(optimizer).__name__} has a learning-rate schedule that was not "
                         "given: it would begin anew in replicas that join and where the trial goes on: make it before, "
                         "and pass it, as in AdaptiveDataParallel(model, optimizer, schedule)")


def refuse(model, optimizers):
    for module in model.modules():
        _refuse_module(module)
    for name, parameter in model.named_parameters():
        _refuse_parameter(name, parameter)
    for optimizer in optimizers:
        _refuse_optimizer(optimizer)
    own = {id(p) for p in model.parameters()}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for p in group["params"]:
                if id(p) not in own:
                    raise UsageError(f"AdaptiveDataParallel: the optimizer has a parameter of shape "
                                     f"{tuple(p.shape)} that is not the model's: want one module that holds all "
                                     "that is trained")
    if torch._dynamo.config.compiled_autograd:
        raise UsageError("AdaptiveDataParallel: torch._dynamo.config.compiled_autograd is on, and compiled autograd "
                         "knows no hooks of C++, by which gradients are brought together: want it off; "
                         "torch.compile itself may stay")


def _is_of_torch(thing, names):
    """Whether it is of a class of torch.distributed with such a name; what it is of need not be imported."""
    return any(kind.__name__ in names and kind.__module__.startswith("torch.distributed")
               for kind in type(thing).__mro__)


def _refuse_module(module):
    kind = type(module).__name__
    if isinstance(module, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        raise UsageError(f"AdaptiveDataParallel: the model has a {kind} in it: wrap the plain module")
    if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and module.sparse:
        raise UsageError(f"AdaptiveDataParallel: the model has an {kind} with sparse gradients: want sparse=False")
    if _is_of_torch(module, ("FullyShardedDataParallel", "FSDPModule")):
        raise UsageError(f"AdaptiveDataParallel: the model has a {kind} in it, whose parameters FSDP has divided: "
                         "each replica has the whole model: wrap the plain module")


def refuse_hooks_of_sums(model):
    for name, parameter in model.named_parameters():
        _refuse_hook(name, parameter)


def _refuse_parameter(name, parameter):
    if _is_of_torch(parameter, ("DTensor",)):
        raise UsageError(f'AdaptiveDataParallel: parameter "{name}" is a DTensor, which is divided over processes: '
                         "each replica has the whole model: want plain parameters")
    _refuse_hook(name, parameter)


def _refuse_hook(name, parameter):
    if parameter._post_accumulate_grad_hooks:
        raise UsageError(f'AdaptiveDataParallel: parameter "{name}" has a hook by '
                         "register_post_accumulate_grad_hook, which is called where its gradient is still this "
                         "replica's own: want the work done after backward, when all gradients are the step's")


def _refuse_optimizer(optimizer):
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise UsageError(f"AdaptiveDataParallel: the optimizer is a {type(optimizer).__name__}: want a "
                         "torch.optim.Optimizer, or a list of them")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise UsageError("AdaptiveDataParallel: LBFGS runs backward as often as it likes, which replicas "
                         "cannot share: want another optimizer")


def watch_steps(run):
    """From here on an optimizer that steps in the training loop without being one of the trial's is told of: each replica
    would train a model of its own by it."""
    global _watch
    if _watch is None:
        _watch = _StepWatch(run)
        of_torch.register_optimizer_step_pre_hook(_watch)


def others_watch_steps():
    """Whether torch has more to call for a step of an optimizer of the trial than the hook of this file."""
    return len(of_torch._global_optimizer_pre_hooks) > (_watch is not None)


class _StepWatch:
    def __init__(self, run):
        self._run = run
        self._known = weakref.WeakSet()  # optimizers that were looked at

    def __call__(self, optimizer, _args, _kwargs):
        loader = self._run.current_loader
        if loader is None or not loader.under_training or optimizer in self._known:
            return
        models = self._run.models
        # One that stands behind a wrapped one, as in Lookahead, has the same parameters.
        trained = {id(p) for model in models for p in model.optimized()}
        others = [p for group in optimizer.param_groups for p in group["params"] if id(p) not in trained]
        said = (f"this {type(optimizer).__name__} was not given to AdaptiveDataParallel, so each replica would train a model "
                "of its own")
        if others and not models:
            raise UsageError(f"{said}: model = AdaptiveDataParallel(model, optimizer) before the first epoch")
        self._known.add(optimizer)
        # Tensors that are no Parameters, such as a batch that is perturbed, may well be each replica's own.
        if any(isinstance(p, torch.nn.Parameter) for p in others):
            warnings.warn(f"{said}: AdaptiveDataParallel(model, optimizer, name=...) before the first epoch, unless it is "
                          "meant to be this replica's own", stacklevel=4)
