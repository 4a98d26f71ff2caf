"""Hugging Face's Trainer as an elastic trial.

    trial = espalier.trial()
    arguments = TrainingArguments(output_dir, learning_rate=trial.get("lr", 5e-5), eval_strategy="epoch")
    trainer = ElasticTrainer(model, arguments, train_dataset=..., eval_dataset=...)
    trainer.train()

The loop is Trainer's in everything but what replicas share: the batches, the step and the state of training.
"""
import dataclasses
import math
import numbers
import pickle
import time
import warnings

import torch

try:
    import transformers
    from transformers.trainer_callback import ExportableState
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"espalier.integrations.transformers needs {error.name}: pip install "
                              "'transformers==5.24.*' 'accelerate>=1.12'", name=error.name) from error

import espalier
import espalier.torch as adl
from espalier import _library
from espalier._runtime import runtime
from espalier.errors import UsageError
from espalier.integrations._callbacks import Told, is_kept
from espalier.integrations._hyperparameter_search import hyperparameter_search
from espalier.integrations._reported import Reports

__all__ = ["ElasticTrainer", "TrialCallback", "hyperparameter_search"]

_LOSS = "eval_loss"
_TESTED = "5.24."
if not transformers.__version__.startswith(_TESTED):
    warnings.warn(f"ElasticTrainer was tested with transformers {_TESTED}*, and this is {transformers.__version__}: its Trainer "
                  "may have changed", stacklevel=2)

_OWN = ("is_local_process_zero", "is_world_process_zero", "stateful_callbacks")  # of a process, or kept beside it


class ElasticTrainer(transformers.Trainer):
    """A Trainer for trials that are resized while they train. `train()` is called once in a process.

    `per_device_train_batch_size` times `gradient_accumulation_steps` is the batch of all replicas together; a forward pass
    has at most `per_device_train_batch_size` samples. A callback may set another number of steps where an epoch begins, or
    where one ends for the next. A batch's loss is the mean over its samples.
    Evaluations are done whole by each replica. Mid-epoch logs tell the loss of the replica's own samples, those at an
    epoch's end that of all samples. The trial's checkpoints are Espalier's; what `save_strategy` asks for is written by
    rank 0, and is for other programs.

    Callbacks that count must derive from transformers' ExportableState, as EarlyStoppingCallback does: their attributes
    are handed to replicas that join.

    trial_metric: which of the evaluation's metrics is reported to the trial (default: `metric_for_best_model`, else
    "eval_loss", of several evaluation data sets the first one's), with the other ones beside it. With eval_strategy="no":
    the loss of each epoch. Steps are epochs, or with eval_strategy="steps" the trial's steps.
    scaling_rule: as of AdaptiveDataParallel.
    """

    def __init__(self, model=None, args=None, *more, trial_metric=None, scaling_rule=None, **kwargs):
        self._elastic_trial = espalier.trial()
        args = args or transformers.TrainingArguments()
        _refuse(args, self._elastic_trial.device)
        super().__init__(model, args, *more, **kwargs)
        named = trial_metric or self.args.metric_for_best_model
        self._named_by = "trial_metric" if trial_metric else "metric_for_best_model"
        self._reports = Reports(_prefixed(named) if named else None)
        self._reported = 0
        self._scaling_rule = scaling_rule
        self._summed_until = 0  # the step up to which _loss_sum goes
        self._loss_sum = 0.0    # of the means of all steps

    # ---- what replicas share

    def get_train_dataloader(self):
        if self.train_dataset is None:
            raise ValueError("Trainer: training requires a train_dataset.")
        args, dataset, collate = self.args, self.train_dataset, self.data_collator
        if hasattr(dataset, "remove_columns"):  # one of the library datasets
            dataset = self._remove_unused_columns(dataset, description="Training")
        else:
            collate = self._get_collator_with_removed_columns(collate, description="Training")
        workers = {"persistent_workers": args.dataloader_persistent_workers,
                   "prefetch_factor": args.dataloader_prefetch_factor} if args.dataloader_num_workers else {}
        return adl.AdaptiveDataLoader(
            dataset, batch_size=args.per_device_train_batch_size * args.gradient_accumulation_steps,
            shuffle=args.train_sampling_strategy == "random", training=True,
            local_bsz_bounds=(None, args.per_device_train_batch_size), collate_fn=collate,
            num_workers=args.dataloader_num_workers, **workers,
            pin_memory=args.dataloader_pin_memory and self.args.device.type == "cuda")

    def is_world_process_zero(self):
        return adl.rank() == 0

    def _save_checkpoint(self, model, trial):
        if adl.rank() == 0:
            super()._save_checkpoint(model, trial)

    def save_model(self, output_dir=None, _internal_call=False):
        """By rank 0."""
        if adl.rank() == 0:
            super().save_model(output_dir, _internal_call)

    def _wrap(self, max_steps):
        self.create_optimizer()
        self.create_scheduler(num_training_steps=max_steps, optimizer=self.optimizer)
        prepared = self.accelerator.prepare_model(self.model)  # autocast, torch.compile
        self.model_wrapped = adl.AdaptiveDataParallel(prepared, self.optimizer, self.lr_scheduler,
                                                      scaling_rule=self._scaling_rule)
        _TrainerStates(self)
        self._seen = adl.Accumulator()
        for name in ("model", "optimizer", "lr_scheduler"):
            setattr(self.callback_handler, name, getattr(self, name))
        return self.model_wrapped

    # ---- the loop

    def _inner_training_loop(self, batch_size=None, args=None, resume_from_checkpoint=None, trial=None,
                             ignore_keys_for_eval=None):
        if resume_from_checkpoint is not None:
            raise UsageError("ElasticTrainer.train: resume_from_checkpoint is not taken: a trial goes on from its own "
                             "checkpoints by itself. To begin with a trained model, load it before")
        if args.eval_strategy == "no":
            self._note_no_evaluation()
        loader = self.get_train_dataloader()
        steps = len(loader)
        max_steps = args.max_steps if args.max_steps > 0 else math.ceil(args.num_train_epochs * steps)
        epochs = math.ceil(max_steps / steps)
        self._init_training_state(max_steps, steps, epochs, None, None)
        model = self._wrap(max_steps)
        self.callback_handler.train_dataloader = loader
        self._initial_num_input_tokens_seen = self._initial_global_step = self._globalstep_last_logged = 0
        self._tr_loss = torch.tensor(0.0, device=args.device)
        self._total_loss_scalar = 0.0
        start = time.time()
        accumulation = _Accumulation(args, loader)
        self.control = self.callback_handler.on_train_begin(args, self.state, self.control)
        accumulation.follow()
        first = epochs
        for epoch in adl.remaining_epochs_until(epochs):  # joins the group; the state is that of the trial from here on
            first = min(first, epoch)
            self._note_rank()
            accumulation.tell()
            self.control = self.callback_handler.on_epoch_begin(args, self.state, self.control)
            accumulation.follow()
            look = _Look(self, model, epoch, ignore_keys_for_eval, start)
            self._run_batches(model, loader, epoch, look, accumulation)
            accumulation.refuse()
            loss = self._sum_up()
            self.control = self.callback_handler.on_epoch_end(args, self.state, self.control)
            look()
            accumulation.follow()
            if args.eval_strategy == "no":
                self._report(epoch + 1, loss, {})
            if self.control.should_training_stop:
                break
        if first == 0 and not self._reported:
            self._reports.say(f'nothing was reported to the trial, since there was no evaluation: eval_strategy is "'
                              f'{args.eval_strategy}", eval_steps {args.eval_steps}, and eval_delay {args.eval_delay}')
        self._tr_loss.zero_()
        self._total_loss_scalar = self._loss_sum
        return self._finalize_training(None, loader.samples * epochs, start)

    def _run_batches(self, model, loader, epoch, look, accumulation):
        args, handler = self.args, self.callback_handler
        self.current_gradient_accumulation_steps = 1  # the group weighs microbatches by their samples
        begun, loss, samples = False, 0.0, 0  # of the step under way
        for inputs in loader:
            accumulation.refuse()
            if not begun:
                self._note_rank()
                self.control = handler.on_step_begin(args, self.state, self.control)
                begun, loss, samples = True, 0.0, 0
            size = loader.current_local_bsz
            self.current_flos += float(self.floating_point_ops(inputs))
            part = self.training_step(model, inputs).item() * size
            loss, samples = loss + part, samples + size
            self._seen["loss"] += part
            self._seen["samples"] += size
            if not loader.before_last:
                look.gradient_norm = self._clip_grad_norm(model) if args.max_grad_norm > 0 else None
                self.control = handler.on_pre_optimizer_step(args, self.state, self.control)
            self.optimizer.step()
            outcome = model.outcome
            if outcome == _library.ACCUMULATED:
                self.control = handler.on_substep_end(args, self.state, self.control)
                continue
            begun = False
            if outcome == _library.DROPPED:
                continue  # a replica was lost: the step's samples are dealt again
            self._end_step(model, loader, epoch, look, outcome, loss / samples)
            if self.control.should_epoch_stop or self.control.should_training_stop:
                break

    def _end_step(self, model, loader, epoch, look, outcome, loss):
        self.control = self.callback_handler.on_optimizer_step(self.args, self.state, self.control)
        look.learning_rate = self._get_learning_rate()
        if outcome == _library.STEPPED and not isinstance(self.lr_scheduler,
                                                          torch.optim.lr_scheduler.ReduceLROnPlateau):
            self.lr_scheduler.step()
        if math.isfinite(loss) or not self.args.logging_nan_inf_filter:
            self._tr_loss += loss
        self.state.global_step = model.steps
        self.state.epoch = epoch + min(runtime().position.cursor / loader.samples, 1.0)
        self.control = self.callback_handler.on_step_end(self.args, self.state, self.control)
        look()

    def _note_rank(self):
        self.state.is_local_process_zero = self.state.is_world_process_zero = adl.rank() == 0

    def _sum_up(self):
        """The epoch's loss over all samples of all replicas, which goes into what is logged at its end."""
        with self._seen.synchronized():
            loss = self._seen["loss"] / self._seen["samples"]
            self._seen.clear()
        if self._globalstep_last_logged <= self._summed_until:  # nothing was logged within the epoch
            self._tr_loss.fill_(loss * (self.state.global_step - self._globalstep_last_logged))
        self._loss_sum += loss * (self.state.global_step - self._summed_until)
        self._summed_until = self.state.global_step
        return loss

    # ---- what the trial hears

    def _report(self, step, value, others):
        self._reports.send(step, value, others)
        self._reported += 1

    def _note_no_evaluation(self):
        wanted = self._reports.wanted
        if wanted is not None and self._named_by == "trial_metric":
            raise UsageError(f'ElasticTrainer: trial_metric is "{wanted}", and eval_strategy is "no": want "epoch" or "steps"')
        if wanted is not None or self.eval_dataset is not None:
            self._reports.say('eval_strategy is "no", and reported to the trial is the mean training loss of each epoch: for '
                              f'"{wanted or "eval_loss"}" want "epoch" or "steps"')

    def evaluate(self, eval_dataset=None, ignore_keys=None, metric_key_prefix="eval"):
        if self.is_in_train:
            runtime().begin_whole_evaluation()
        metrics = super().evaluate(eval_dataset, ignore_keys, metric_key_prefix)
        if not self.is_in_train or metric_key_prefix != "eval":
            return metrics
        if self.args.eval_strategy == "no":  # else a trial's values would be of two kinds
            self._reports.say('an evaluation is not reported to the trial, since eval_strategy is "no": want "epoch" or "steps"')
            return metrics
        figures = self._reports.figures({name: value for name, value in metrics.items()
                                         if name != "epoch" and not name.endswith(("_runtime", "_per_second"))})
        wanted = self._chosen(figures, self.eval_dataset if eval_dataset is None else eval_dataset)
        step = self.state.global_step if self.args.eval_strategy == "steps" else math.ceil(self.state.epoch)
        self._report(step, figures.pop(wanted), figures)
        return metrics

    def _chosen(self, figures, dataset):
        """Which of them is the trial's value."""
        wanted, given = self._reports.wanted, ", ".join(sorted(figures)) or "none"
        if wanted is not None:
            if wanted not in figures:
                raise UsageError(f'ElasticTrainer: {self._named_by} is "{wanted}", and the evaluation gives {given}')
            return wanted
        if _LOSS in figures:
            return _LOSS
        of_sets = [name for of in (dataset if isinstance(dataset, dict) else ()) if (name := f"eval_{of}_loss") in figures]
        if not of_sets:
            raise UsageError(f'ElasticTrainer: the evaluation gives no "{_LOSS}": want a trial_metric, one of {given}')
        self._reports.say(f'there are several evaluation data sets, and reported to the trial is "{of_sets[0]}": for another '
                          f"value name one of {given} as trial_metric")
        return of_sets[0]


class TrialCallback(transformers.TrainerCallback):
    """For a Trainer that nobody changed, alone or under its own launcher (torchrun, accelerate, deepspeed): its evaluations
    are the trial's values, and it ends when the trial is to, at the same step in all processes.

        Trainer(model, arguments, callbacks=[TrialCallback()], ...)

    Where `output_dir` is in the trial's folder for checkpoints, it also saves and ends when the trial is to go on elsewhere or
    later, such as on another number of slots: it asks wherever it logs, evaluates or saves, and where an epoch ends.

    trial_metric: which of the evaluation's metrics (default: `metric_for_best_model`, else "eval_loss"). Steps are epochs, or
    with eval_strategy="steps" the Trainer's steps.
    """

    def __init__(self, trial_metric=None):
        self._wanted = trial_metric
        self._told = None
        self._keeps = False

    def on_train_begin(self, args, state, control, **kwargs):
        wanted = self._wanted or args.metric_for_best_model
        self._told = Told("TrialCallback", _prefixed(wanted) if wanted else _LOSS, args.process_index, args.world_size)
        self._keeps = is_kept(args.output_dir)

    def on_step_end(self, args, state, control, **kwargs):
        # An epoch's last step is followed by on_epoch_end, and by what is evaluated there.
        if (control.should_log or control.should_evaluate or control.should_save) and not float(state.epoch).is_integer():
            self._save_if_told(state, control)

    def on_epoch_end(self, args, state, control, **kwargs):
        if self._told.goes_on_later:
            control.should_evaluate = False
        else:
            self._save_if_told(state, control)

    def _save_if_told(self, state, control):
        last = control.should_training_stop or state.global_step >= state.max_steps
        if self._keeps and not last and self._told.to_save(state.global_step):
            control.should_save = control.should_training_stop = True

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        if self._told is None:
            return
        step = state.global_step if args.eval_strategy == "steps" else math.ceil(state.epoch or 0)
        if self._told.report(step, metrics or {}):
            control.should_training_stop = True
            if self._keeps and self._told.to_save(state.global_step, told_to_stop=True):
                control.should_save = True

    def on_train_end(self, args, state, control, **kwargs):
        told, self._told = self._told, None
        told.end()


class _Accumulation:
    """What callbacks set of gradient_accumulation_steps while it trains: of the group's batch, as that is the group's."""

    def __init__(self, args, loader):
        self._args, self._loader, self._batch = args, loader, args.per_device_train_batch_size

    def _present(self):
        return self._loader.next_batch_size // self._batch

    def tell(self):
        """Others may have set it before this replica joined them."""
        self._args.gradient_accumulation_steps = self._present()

    def follow(self):
        """Where an epoch begins or ends."""
        asked = self._args.gradient_accumulation_steps
        if not isinstance(asked, numbers.Integral) or isinstance(asked, bool) or asked < 1:
            raise UsageError(f"ElasticTrainer: gradient_accumulation_steps is {asked!r}: want a positive whole number")
        if asked != self._present() and self._batch * asked > self._loader.samples:
            raise UsageError(f"ElasticTrainer: gradient_accumulation_steps is {asked}, and {asked} batches of {self._batch} "
                             f"samples are more than an epoch's {self._loader.samples}: want less")
        self._loader.set_batch_size(self._batch * asked)

    def refuse(self):
        asked = self._args.gradient_accumulation_steps
        if asked != self._present():
            raise UsageError(f"ElasticTrainer: gradient_accumulation_steps was set to {asked!r} within an epoch, where it is "
                             f"{self._present()}: set it where an epoch begins or ends, in on_epoch_begin or on_epoch_end")


class _Look:
    """After a step or an epoch: logs, evaluates and saves where Trainer's control says so."""

    def __init__(self, trainer, model, epoch, ignore_keys, start):
        self._trainer, self._model, self._epoch, self._ignore_keys, self._start = trainer, model, epoch, ignore_keys, start
        self.gradient_norm = self.learning_rate = None

    def __call__(self):
        trainer = self._trainer
        trainer._maybe_log_save_evaluate(trainer._tr_loss, self.gradient_norm, self._model, None, self._epoch,
                                         self._ignore_keys, self._start, learning_rate=self.learning_rate)


class _TrainerStates(espalier.State):
    """TrainerState, the control flags, what callbacks count, and the sums of losses."""

    def __init__(self, trainer):
        super().__init__("espalier.transformers")
        self._trainer = trainer

    def _callbacks(self):
        return [c for c in self._trainer.callback_handler.callbacks if isinstance(c, ExportableState)]

    def save(self, fileobj):
        trainer = self._trainer
        state = {f.name: getattr(trainer.state, f.name) for f in dataclasses.fields(trainer.state) if f.name not in _OWN}
        pickle.dump({"state": state, "control": vars(trainer.control),
                     "callbacks": [(type(c).__name__, c.state()["attributes"]) for c in self._callbacks()],
                     "loss": (trainer._loss_sum, trainer._summed_until, trainer._globalstep_last_logged)}, fileobj)

    def load(self, fileobj):
        trainer = self._trainer
        read = pickle.load(fileobj)
        vars(trainer.state).update(read["state"])
        vars(trainer.control).update(read["control"])
        own = self._callbacks()
        if [type(c).__name__ for c in own] != [name for name, _ in read["callbacks"]]:
            raise UsageError(f"ElasticTrainer: the callbacks with a state are {[type(c).__name__ for c in own]}, and the "
                             f"trial's are {[name for name, _ in read['callbacks']]}: add the same on each replica, in "
                             "the same order")
        for callback, (_, attributes) in zip(own, read["callbacks"]):
            for name, value in attributes.items():
                setattr(callback, name, value)
        trainer._loss_sum, trainer._summed_until, trainer._globalstep_last_logged = read["loss"]
        trainer._tr_loss.zero_()


def _prefixed(metric):
    return metric if metric.startswith("eval_") else f"eval_{metric}"


def _refuse(args, device):
    """What the replicas of a trial cannot share, or what their engine does itself."""
    for what, right in ((args.load_best_model_at_end, "load_best_model_at_end=False: the trial's curve tells its best"),
                        (args.auto_find_batch_size, "auto_find_batch_size=False, and a per_device_train_batch_size that fits"),
                        (args.fp16, "bf16=True, or neither"),
                        (args.fsdp, "no fsdp: each replica has the whole model"),
                        (args.deepspeed, "no deepspeed: each replica has the whole model"),
                        (args.include_num_input_tokens_seen != "no", 'include_num_input_tokens_seen="no"'),
                        (args.dataloader_drop_last, "dataloader_drop_last=False: the last step of an epoch is shorter"),
                        (args.eval_on_start, "eval_on_start=False: evaluate() before train()"),
                        (args.train_sampling_strategy not in ("random", "sequential"),
                         'train_sampling_strategy "random" or "sequential"')):
        if what:
            raise UsageError(f"ElasticTrainer: want {right}")
    if args.device.type != device.type or (device.index or 0) != (args.device.index or 0):
        raise UsageError(f"ElasticTrainer: TrainingArguments has chosen {args.device}, and the trial's slot has {device}: "
                         f"call torch.cuda.set_device before, or use_cpu=True")
    args._n_gpu = min(args.n_gpu, 1)  # others on this machine are other replicas'
