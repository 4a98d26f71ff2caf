"""The model and its optimizers."""
import contextlib
import ctypes
import functools
import io
import pickle
import types
import typing
from collections.abc import Callable, Iterator, Sequence

import torch
from torch.autograd import profiler
from torch.optim import optimizer as of_torch

from espalier import _library, _pickles
from espalier._runtime import runtime
from espalier._the_trial import the_trial
from espalier.errors import TrialError, UsageError
from espalier.torch import _amp, _built_with
from espalier.torch import scaling_rules as rules
from espalier.torch._gradients import DeferredHooks, StepGuard, Zeroing, drop_untrained, let_clip_nothing, watch_backward
from espalier.torch._module_state import ModuleState, compared, load_exactly
from espalier.torch._refusals import (others_watch_steps, refuse, refuse_hooks_of_sums, refuse_schedules_elsewhere,
                                      refuse_types)
from espalier.torch._schedules import Schedule, WithState

_DEFAULT_NAME = "adaptdl-dataparallel"
_IGNORED = {"find_unused_parameters", "static_graph", "gradient_as_bucket_view", "broadcast_buffers", "device_ids",
            "output_device", "dim", "check_reduction", "delay_all_reduce_named_params", "param_to_hook_all_reduce",
            "init_sync", "skip_all_reduce_unused_params"}
_NOT_TAKEN = (_library.ACCUMULATED, _library.DROPPED, _library.LEFT_OUT)
_LABELLING = torch.optim.Optimizer.profile_hook_step(lambda: None).__code__  # of what torch puts around each step()


class _TensorPickler(pickle.Pickler):
    """Takes tensors out, which travel from memory to memory."""

    def __init__(self, out):
        super().__init__(out, protocol=pickle.HIGHEST_PROTOCOL)
        self.tensors = []

    def persistent_id(self, obj):
        if not isinstance(obj, torch.Tensor) or isinstance(obj, torch.nn.Parameter):
            return None
        self.tensors.append(obj.detach())
        return len(self.tensors) - 1


class _TensorUnpickler(pickle.Unpickler):
    def __init__(self, source, tensors):
        super().__init__(source)
        self._tensors = tensors

    def persistent_load(self, pid):
        return self._tensors[pid]


class AdaptiveDataParallel(torch.nn.Module):
    """Trains a model on as many replicas as the trial has at the moment. The loop stays a plain one: backward averages
    the gradients over the replicas, and `optimizer.step()` multiplies the learning rate by the factor that the scaling
    rule gives for the batch size. Each batch of the training loader starts without gradients; between two backward
    passes of a batch, `zero_grad` drops what the former has brought.

    Parameters of the optimizer that do not require gradients at this point are never trained, and take no memory for
    it. To freeze a parameter for a while only, freeze it after this call. Parameters that no optimizer of the trial
    has keep no gradients.

    optimizer: one, or a list of several over the same model.
    lr_scheduler, mp_scaler: are saved in checkpoints, handed over to new replicas, and not stepped in steps that are
        skipped. lr_scheduler may be a list.
    scaling_rule: a rule; its name ("adascale", "adamscale", "linear", "sqrt", "legw:2", or "none" for a learning rate
        that stays); or None for the optimizer's default.
    name: unique among the models of a trial.
    base_batch_size: the batch size for which the learning rate is meant, samples; 0: the loader's batch_size.
    max_gradient_norm: gradients with a larger norm are scaled down to it; 0: never. torch's clip_grad_norm_
        between backward and step works as well.
    max_skipped_steps: steps in a row that may be skipped because their gradients are not finite; after more, the
        trial fails.
    bucket_cap_mb: gradients are reduced in buckets of about this many MB, while backward computes the rest (default:
        4, and with NCCL 25 after a first bucket of 1).
    Other options of DistributedDataParallel are accepted and ignored.
    """

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer],
                 lr_scheduler: typing.Any = None, mp_scaler: typing.Any = None,
                 scaling_rule: str | rules.ScalingRuleBase | None = None, name: str = _DEFAULT_NAME, *,
                 base_batch_size: int = 0, max_gradient_norm: float = 0.0, max_skipped_steps: int = 10,
                 bucket_cap_mb: float | None = None, **ddp_options: typing.Any) -> None:
        super().__init__()
        the_trial()
        unknown = sorted(set(ddp_options) - _IGNORED)
        if unknown:
            raise UsageError(f"AdaptiveDataParallel: unknown options {', '.join(unknown)}")
        self.module = model
        optimizers = list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]
        schedules = list(lr_scheduler) if isinstance(lr_scheduler, (list, tuple)) else [lr_scheduler]
        schedules = [each for each in schedules if each is not None]
        refuse_types(model, optimizers, schedules, mp_scaler)
        refuse(model, optimizers)
        run = runtime()
        if run.joined:
            raise UsageError(f'AdaptiveDataParallel "{name}" was made after training began: make all of them before '
                             "the first epoch. In a notebook restart the kernel: a process is one trial")
        own_name = "" if name == _DEFAULT_NAME else name
        if any(other.name == own_name for other in run.models):
            raise UsageError(f'AdaptiveDataParallel: there is already one named "{name}": want a name for each model, '
                             'as in AdaptiveDataParallel(critic, optimizer, name="critic")')
        state = types.SimpleNamespace(model=model, gain=1.0, lr_factor=1.0)
        self.__dict__["_state"] = state
        self.__dict__["_trained"] = _TrainedModel(self, model, optimizers, schedules, mp_scaler, scaling_rule,
                                                  own_name,
                                                  {"base_batch_size": base_batch_size,
                                                   "max_gradient_norm": max_gradient_norm,
                                                   "max_skipped_steps": max_skipped_steps,
                                                   "bucket_bytes": 0 if bucket_cap_mb is None else
                                                   max(int(bucket_cap_mb * 2**20), 1)})

    def forward(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        return self._modules["module"](*args, **kwargs)  # as .module, found at once

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients that backward has brought in this batch and no step has taken."""
        if runtime().joined:
            self._trained.zero_module()
        else:
            self.module.zero_grad(set_to_none)

    def __reduce_ex__(self, protocol):
        raise UsageError("an AdaptiveDataParallel belongs to its trial and is neither copied nor pickled: copy or save "
                         "its .module, or its state_dict()")

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within this context, backward passes accumulate gradients without reducing them, for a later pass of the same
        batch."""
        runtime().library.hold_gradients(1)
        try:
            yield
        finally:
            runtime().library.hold_gradients(0)

    def rehearse(self, microbatch: Callable[[], typing.Any]) -> None:
        """Before the first epoch: calls `microbatch()`, which is to do what the loop does with a batch (forward,
        backward, maybe optimizer.step()) for all models of the trial, so that a group that this replica joins need not wait
        for its first pass on a GPU. Parameters, buffers, optimizers, schedules, accumulators and torch's random
        generators are afterwards as they were; what else it changes is the program's own to put back."""
        runtime().rehearse(microbatch)

    # ---- where training is

    @property
    def scaling_rule(self) -> rules.ScalingRuleBase:
        """The rule by which learning rates follow the batch size: an instance of espalier.torch.scaling_rules."""
        return self._trained.rule

    @property
    def gain(self) -> float:
        """How many steps at the initial batch size one step at the present batch size is worth."""
        return runtime().position.gain

    @property
    def steps(self) -> int:
        """Optimizer steps that the trial has done."""
        return runtime().library.steps()

    @property
    def progress(self) -> float:
        """Scale-invariant steps: what the trial's steps are worth at the initial batch size."""
        return runtime().position.progress

    @property
    def skipped_steps(self) -> int:
        """Steps that were skipped because their gradients were not finite."""
        return runtime().position.skipped_steps

    @property
    def outcome(self) -> int:
        """What has come of the last call of step(): one of those in espalier._library."""
        return self._trained.outcome

    @property
    def replicas(self) -> int:
        """How many replicas the trial has now."""
        return runtime().position.replicas

    @property
    def rank(self) -> int:
        """This replica's number among them, from 0. It may change with the group; before the first epoch it is 0."""
        return runtime().position.rank

    @property
    def batch_size(self) -> int:
        """Samples of the next step over all replicas."""
        return runtime().position.batch_size

    def to_tensorboard(self, writer: typing.Any, global_step: int, tag_prefix: str = "") -> None:
        """Writes what AdaptDL writes, on rank 0."""
        position = runtime().position
        if position.rank != 0:
            return
        if tag_prefix and not tag_prefix.endswith("/"):
            tag_prefix += "/"
        noise = self.scaling_rule.adp.gns
        writer.add_scalar(tag_prefix + "Gradient_Norm_Sqr", noise.sqr_avg(), global_step)
        writer.add_scalar(tag_prefix + "Gradient_Variance", noise.var_avg(), global_step)
        writer.add_scalar(tag_prefix + "Gain", position.gain, global_step)
        writer.add_scalar(tag_prefix + "Learning_Rate_Factor", position.factor, global_step)


def _step_of(optimizer):
    """Its own step(). Torch puts each into its profiles under a label, which takes as long as a small operation of
    tensors: it is left out where nobody makes a profile."""
    own, of_class = optimizer.step, type(optimizer).step
    if "step" in vars(optimizer) or getattr(of_class, "__code__", None) is not _LABELLING:
        return own
    unlabelled = of_class.__wrapped__

    def step():
        hooked = (optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks or
                  others_watch_steps() or of_torch._global_optimizer_post_hooks)
        if hooked or profiler._is_profiler_enabled:
            own()
        else:
            unlabelled(optimizer)
    return step


class _TrainedModel:
    """What the runtime asks of one model and its optimizers."""

    def __init__(self, wrapper, model, optimizers, schedulers, scaler, rule, name, options):
        self._run = runtime()
        self.model = model
        self.name = name
        self._optimizers = optimizers
        self.schedules = schedulers
        self._scaler = scaler
        self._steps = [_step_of(optimizer) for optimizer in optimizers]
        self._stepped = 0  # optimizers of this model that were stepped for this batch
        self.came_to_step = False  # the program has, with this batch
        self._passed_over = False  # a scaler has found fault with the gradients of one of them
        self._guard = StepGuard()
        self._zeroings = {}  # by optimizer; None: of the model
        self.step_calls = 0  # calls of step() of all of them, ever
        self.loss_scale = 1.0  # by which the loss was multiplied, while a GradScaler steps them
        self._outcome = _library.STEPPED
        self._moments_given = False
        self._set_rule(wrapper, rule)
        self._adapt_norms()
        self._number = len(self._run.models)
        self.hooks = DeferredHooks(self)
        self.state = ModuleState(self.model, self.name)
        self._run.models.append(self)  # the library asks for its parameters while it is added
        try:
            self._add(options)
        except BaseException:
            self._run.models.remove(self)
            raise
        self.rule.bind(wrapper, self._number, len(self._groups()), optimizers[0])
        self._patch()
        suffix = f".{name}" if name else ""
        for i, each in enumerate(self.schedules):
            self._hold_back(each, Schedule(f"scheduler-{i}{suffix}" if i else f"scheduler{suffix}", each, self._run))
        if scaler is not None:
            WithState(f"scaler{suffix}", scaler)
        self.built_with = {"options": [_built_with.options(each) for each in optimizers],
                           "schedules": [_built_with.schedule(each) for each in schedulers]}

    def _set_rule(self, wrapper, rule):
        self._rule_name = rule if isinstance(rule, str) else ""
        adam = any(isinstance(o, (torch.optim.Adam, torch.optim.AdamW)) for o in self._optimizers)
        self._is_adam = adam
        if rule is None or isinstance(rule, str):
            self.rule = rules.by_name(self._rule_name) or (rules.AdamScale() if adam else rules.AdaScale())
            self._own_rule = -1
            return
        if not isinstance(rule, rules.ScalingRuleBase):
            raise UsageError(f"AdaptiveDataParallel: scaling_rule is a {type(rule).__name__}: want a name or a "
                             "ScalingRuleBase")
        self.rule = rule
        spec = rule.spec()
        self._rule_name = spec or ""
        self._own_rule = -1 if spec else len(self._run.rules)
        if not spec:
            self._run.rules.append(rule)

    def _groups(self):
        return [group for optimizer in self._optimizers for group in optimizer.param_groups]

    def optimized(self):
        """All that its optimizers train."""
        return [p for group in self._groups() for p in group["params"]]

    def _add(self, options):
        groups = [group["params"] for group in self._groups()]
        optimized = [p for group in groups for p in group]
        self.trained = [p for p in optimized if p.requires_grad]  # what was frozen before stays so
        self._run.ops.describe_model(optimized, [len(group) for group in groups])
        described = _library.ModelOptions(
            name=self.name.encode(), scaling_rule=self._rule_name.encode(), own_rule=self._own_rule,
            is_adam=int(self._is_adam), **options)
        self._run.library.add_model(ctypes.byref(described))
        self._rates = (ctypes.c_double * len(groups))()

    def settle(self, schedules):
        """Training begins with these schedules of all models: modules may have been replaced since the model was wrapped, hooks
        added, and schedules made."""
        for optimizer in self._optimizers:
            refuse_schedules_elsewhere(optimizer, schedules)
        self._adapt_norms()
        refuse_hooks_of_sums(self.model)
        watch_backward(self._run)
        let_clip_nothing()
        drop_untrained(self.model, {id(p) for model in self._run.models for p in model.optimized()})

    def _adapt_norms(self):
        if any(isinstance(module, torch.nn.SyncBatchNorm) for module in self.model.modules()):
            from espalier.torch import _norm
            _norm.adapt(self.model)

    # ---- the step

    def _patch(self):
        for i, optimizer in enumerate(self._optimizers):
            # wraps: schedules look for what they have left on the function.
            @functools.wraps(optimizer.step)
            def step(_self, closure=None, *, _index=i):
                if closure is not None:
                    raise UsageError("optimizer.step(closure): run backward before, and step without a closure")
                self._step(_index)

            def zero_grad(_self, set_to_none=True, *, _index=i, _plain=optimizer.zero_grad):
                if self._run.joined:
                    self._zeroing(_index, self._optimizers[_index])()
                else:
                    _plain(set_to_none)

            def add_param_group(_self, param_group):
                raise UsageError("optimizer.add_param_group after the optimizer was wrapped: replicas have no place "
                                 "for its gradients. Want all groups there before; what is to be trained later is "
                                 "frozen after the wrap (requires_grad_(False))")

            optimizer.step = types.MethodType(step, optimizer)
            optimizer.zero_grad = types.MethodType(zero_grad, optimizer)
            optimizer.add_param_group = types.MethodType(add_param_group, optimizer)
            _amp.watch(optimizer, self)

    def _step(self, index):
        run = self._run
        loader = run.current_loader
        if loader is not None and run.joined and not loader.under_training:
            self._refuse_step_elsewhere(loader)
        if index != self._stepped:
            raise UsageError(f"optimizer {index} of the model was stepped where optimizer {self._stepped} was due: "
                             "step each once for each batch, in the order in which they were given")
        self._stepped += 1
        self.came_to_step = True
        self.step_calls += 1
        if self._stepped < len(self._optimizers):
            self._guard.set(self.trained, self._stepped)
            return  # with the last one
        passed_over = self._passed_over  # all take their step, or none
        self._begin_steps()
        i = 0
        for of in self._optimizers:
            for group in of.param_groups:
                self._rates[i] = group["lr"]
                i += 1
        self._outcome = (run.library.pass_over(self._number) if passed_over else
                         run.library.step(self._number, self._rates, i, self.loss_scale))
        run.note_step(self._outcome == _library.DROPPED)

    def pass_over(self):
        """The optimizer that is due is not stepped for this batch. All optimizers of a model take a step, or none: this
        one comes to nothing, because of the gradients that are not finite."""
        self._stepped += 1
        self.came_to_step = self._passed_over = True
        if self._stepped == len(self._optimizers):
            self._begin_steps()
            self._outcome = self._run.library.pass_over(self._number)
            self._run.note_step(self._outcome == _library.DROPPED)

    def _begin_steps(self):
        """The first optimizer is due."""
        self._stepped = 0
        self._passed_over = False
        self._guard.lift()

    # ---- zero_grad

    def _zeroing(self, key, of):
        """`of`: the optimizer or module whose parameters are zeroed."""
        if key not in self._zeroings:
            parameters = of.parameters() if isinstance(of, torch.nn.Module) else (
                p for group in of.param_groups for p in group["params"])
            self._zeroings[key] = Zeroing(parameters)
        return self._zeroings[key]

    def zero_module(self):
        self._zeroing(None, self.model)()

    def numbers_in_optimizers(self, ids):
        """For each optimizer, the places of those parameters among all that are trained."""
        places = {id(p): i for i, p in enumerate(self.trained) if id(p) in ids}
        return [[places[id(p)] for group in optimizer.param_groups for p in group["params"] if id(p) in places]
                for optimizer in self._optimizers]

    def zero(self, index, numbers):
        """Drops gradients of optimizer `index`. Where its step waits for the others' it has taken them."""
        if index >= self._stepped:
            self._run.library.zero_gradients(self._number, numbers, len(numbers))

    def _refuse_step_elsewhere(self, loader):
        """In a loop that is not the training loader's; without a loop the library says it."""
        if loader.training:
            raise UsageError("an optimizer was stepped without a batch of the training loader: this is the second "
                             "loop over it in one epoch, which is an evaluation: want one in each epoch")
        training = self._run.training_loader
        why = ("there was no loader when training began" if training is None else
               f"the training loader is the one of {training.samples} samples that was made before")
        made = ("this loader was made after training began" if loader.made_late else
                "this loop is over another, which is an evaluation")
        raise UsageError(f"an optimizer was stepped without a batch of the training loader: {made}, and {why}: make "
                         "the training loader once, before the loop over epochs, and name it by training=True "
                         "where there are several")

    def begin_batch(self):
        self._begin_steps()
        self._outcome = _library.STEPPED
        self.came_to_step = False
        if self.hooks.any:
            self.hooks.defer()  # those that were added since

    @property
    def scales_loss(self):
        """Whether it trains in mixed precision, as its GradScaler tells."""
        return self._scaler is not None and self._scaler.is_enabled()

    @property
    def defers_hooks(self):
        """Whether gradients that backward brings now are summed later."""
        return bool(self._run.library.defers_hooks(self._number))

    def take_step(self, factors):
        """Called back by the library when the step is to be taken. `factors`: of each group's rate."""
        changed = []
        if factors:
            for group, factor in zip(self._groups(), factors):
                if factor != 1.0:
                    changed.append((group, group["lr"]))
                    group["lr"] = group["lr"] * factor
        try:
            for step in self._steps:
                step()
        finally:
            for group, rate in changed:
                group["lr"] = rate
        if self._is_adam and not self._moments_given:
            self.give_moments(stepping=True)

    def leave_step_out(self, _factors):
        """Called back in place of take_step."""
        self._run.library.give(b"left out")

    def give_moments(self, stepping=False):
        """Noise is measured of gradients as Adam scales them. `stepping`: within a step, which is counted after it."""
        self._moments_given = False
        moments, steps, beta2, epsilon = [], [], [], []
        trained = {id(p) for p in self.trained}
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if id(p) not in trained:
                        continue
                    state = optimizer.state.get(p, {})
                    if "exp_avg_sq" not in state:
                        return  # one that never had a gradient, or an optimizer of another kind
                    moments.append(state["exp_avg_sq"])
                    steps.append(int(state["step"]) - (stepping and p.grad is not None))
                    beta2.append(float(group["betas"][1]))
                    epsilon.append(float(group["eps"]))
        self._moments_given = True
        self._run.ops.set_second_moments(self._number, moments, steps, beta2, epsilon)

    def _hold_back(self, scheduler, schedule):
        """A schedule that is stepped for each batch counts only steps that were taken, and one that is stepped for
        each epoch no step that it has done already."""
        kind = type(scheduler)

        @functools.wraps(kind.step)
        def step(of, *args, **kwargs):
            if self._run.rehearsing is not None:
                return None
            if self._run.current_loader is not None and self._outcome in _NOT_TAKEN:
                return None
            return kind.step(of, *args, **kwargs) if schedule.admits() else None
        # By a class of its own: what is set on a schedule itself becomes part of its state_dict.
        scheduler.__class__ = type(kind.__name__, (kind,), {"step": step, "__module__": kind.__module__})

    def accumulates(self):
        """Whether the present batch is not its step's last: a rehearsal is none's."""
        if self._run.rehearsing is not None:
            return True
        loader = self._run.current_loader
        return loader is not None and loader.before_last

    def has_no_gradients(self):
        return all(p.grad is None for p in self.trained)

    @property
    def outcome(self):
        """What has come of the last call of step()."""
        return self._outcome

    # ---- from replica to replica

    def compared(self):
        """What all replicas have alike of the optimizers and schedules: names of tensors, these, and numbers."""
        return compared(self._optimizers, [*self.schedules, *([self._scaler] if self._scaler is not None else [])],
                        {id(p): name for name, p in self.model.named_parameters()})

    def write_state(self):
        states = []
        for optimizer in self._optimizers:
            state = optimizer.state_dict()
            states.append({"state": state["state"], "param_groups": state["param_groups"]})
        out = io.BytesIO()
        pickler = _TensorPickler(out)
        of = f' of model "{self.name}"' if self.name else ""
        names = [f"the state of optimizer {i} ({type(o).__name__}){of}" for i, o in enumerate(self._optimizers)]
        _pickles.dump(states, pickler, dict(zip(names, states)),
                      "leave it out of the optimizer's state and groups, or keep it in an espalier.State")
        return out.getvalue(), pickler.tensors

    def read_state(self, pickled, tensors):
        states = _TensorUnpickler(io.BytesIO(pickled), tensors).load()
        for optimizer, state in zip(self._optimizers, states):
            load_exactly(optimizer, state)
        self._moments_given = False

    def clear_state(self):
        self._moments_given = False
        for optimizer in self._optimizers:
            optimizer.state.clear()

    # ---- checkpoints

    def _keys(self):
        suffix = f".{self.name}" if self.name else ""
        return f"model{suffix}", f"optimizer{suffix}"

    def checkpoint_content(self):
        model, optimizer = self._keys()
        states = [o.state_dict() for o in self._optimizers]
        return {model: self.model.state_dict(), optimizer: states[0] if len(states) == 1 else states}

    def buffers_in_checkpoint(self):
        """Which names under the model's key are those of buffers: a program may register some when it first runs."""
        return {self._keys()[0]: self.state.buffer_names()}

    def load_checkpoint_content(self, read):
        model, optimizer = self._keys()
        for key in (model, optimizer):
            if key not in read:
                raise TrialError(f"the checkpoint has no {key}, which this program has")
        try:
            self.state.make_buffers(read["espalier"].get("buffers", {}).get(model, ()), read[model])
            self.model.load_state_dict(read[model])
            states = read[optimizer] if isinstance(read[optimizer], list) else [read[optimizer]]
            for own, state in zip(self._optimizers, states):
                load_exactly(own, state)
        except (RuntimeError, ValueError, KeyError) as error:
            raise TrialError(f"the checkpoint does not fit this program: {error}") from error
        self._moments_given = False
        return {model, optimizer}

    def take_own_options(self, then):
        """A checkpoint of a trial with other parameters has been loaded, whose program had built this model's optimizers and
        schedules with `then`."""
        factors = []
        for before, own, optimizer in zip(then["options"], self.built_with["options"], self._optimizers):
            factors += _built_with.merge_groups(before, own, optimizer)
        for before, own, each in zip(then["schedules"], self.built_with["schedules"], self.schedules):
            each.load_state_dict(_built_with.merged_schedule(before, own, each.state_dict(), factors))


def prepare(model: torch.nn.Module, optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer], loader: typing.Any, *,
            scheduler: typing.Any = None, scaler: typing.Any = None,
            scaling_rule: str | rules.ScalingRuleBase | None = None, **options: typing.Any) \
        -> tuple[AdaptiveDataParallel, typing.Any, typing.Any]:
    """Wraps a model and its optimizer, and names the training loader. Returns model, optimizer, loader."""
    wrapped = AdaptiveDataParallel(model, optimizer, scheduler, scaler, scaling_rule, **options)
    runtime().training_loader = loader
    return wrapped, optimizer, loader
