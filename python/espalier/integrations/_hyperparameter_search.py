"""`Trainer.hyperparameter_search`, by Espalier: what transformers' own takes and returns, with trials that are processes."""
import copy
import functools
import logging
import os
from collections.abc import Mapping

import transformers
from transformers.trainer_utils import BestRun, default_compute_objective, get_last_checkpoint, number_of_arguments

import espalier
from espalier import space
from espalier.errors import UsageError

_logger = logging.getLogger(__name__)
# What transformers draws by default.
_DEFAULT = {"learning_rate": space.loguniform(1e-6, 1e-4), "num_train_epochs": space.randint(1, 6), "seed": space.randint(1, 41),
            "per_device_train_batch_size": space.choice(4, 8, 16, 32, 64)}


def hyperparameter_search(trainer, hp_space=None, compute_objective=None, n_trials=20, direction="minimize", **study):
    """As `trainer.hyperparameter_search(...)` of Hugging Face's Trainer, which must have been made with `model_init`: each
    trial trains a model of its own, in a process of its own, on slots that it has to itself. Returns transformers' BestRun,
    whose `run_summary` is the Result of `espalier.tune`.

    hp_space: a function of the trial that suggests values, as for Optuna (`trial.suggest_float("learning_rate", 1e-6, 1e-4,
        log=True)`), or that returns a search space; or that space, {"learning_rate": espalier.space.loguniform(1e-6, 1e-4)}.
        The names are those of TrainingArguments; `model_init(trial)` may read others, as trial.params["width"].
    compute_objective: the value, of the metrics of an evaluation (default: transformers', the loss, or the sum of all metrics
        where there are others). Each evaluation reports one, by which a pruner judges.
    n_trials, direction: how many, and "minimize" or "maximize".

    Other keywords are those of `espalier.tune`: slots, sampler, pruner, name, directory, time_limit_s, address, ...
    Checkpoints of trial N are in `output_dir`/run-N.
    """
    if trainer.model_init is None:
        raise UsageError("hyperparameter_search: the Trainer has one model, and each trial needs its own: make it with "
                         "Trainer(model_init=...)")
    if not isinstance(direction, str):
        raise UsageError(f'hyperparameter_search: direction is {direction!r}: want "minimize" or "maximize", of one value')
    sent, asked = _sendable(trainer), hp_space if callable(hp_space) else None
    compute = compute_objective or default_compute_objective

    def hyperparameter_search(trial):  # studies are named after it
        return _train(sent, trial, asked, compute)

    result = espalier.tune(hyperparameter_search, _space_of(_DEFAULT if hp_space is None else hp_space), metric="objective",
                           direction=direction, trials=n_trials, **study)
    best = result.best_trial
    if best is None:  # it was stopped before
        return BestRun("", float("nan"), {}, result)
    return BestRun(str(best["number"]), result.best_value, dict(result.best_parameters), result)


def _sendable(trainer):
    """A copy without what is of this process: a model, and devices."""
    sent = copy.copy(trainer)
    sent.model = sent.model_wrapped = sent.optimizer = sent.lr_scheduler = sent.accelerator = None
    sent.callback_handler = copy.copy(trainer.callback_handler)
    sent.callback_handler.model = sent.callback_handler.optimizer = sent.callback_handler.lr_scheduler = None
    sent.args = copy.copy(trainer.args)
    sent.args.output_dir = os.path.abspath(trainer.args.output_dir)
    for of_process in ("_setup_devices", "distributed_state"):
        vars(sent.args).pop(of_process, None)
    return sent


class _Trial(dict):
    """What hp_space and model_init see: the parameters, as of Ray, and a trial that suggests them, as of Optuna."""

    def __init__(self, number, parameters):
        super().__init__(parameters)
        self.number = number

    @property
    def params(self):
        return self

    def suggest_float(self, name, low, high, *, step=None, log=False):
        return self._suggested(name, _range(name, low, high, step, log))

    def suggest_int(self, name, low, high, *, step=1, log=False):
        of_one = space.qloguniform(low, high, 1) if log else space.randint(low, high + 1)
        return int(self._suggested(name, of_one if step == 1 else _range(name, low, high, step, log)))

    def suggest_categorical(self, name, choices):
        return self._suggested(name, space.choice(*choices))

    def _suggested(self, name, distribution):
        if name not in self:
            raise UsageError(f'hyperparameter_search: hp_space suggests "{name}" in some trials alone: suggest the same in all, '
                             "or give a search space with nested choices")
        return self[name]


class _Looking(_Trial):
    """Notes what hp_space suggests, and suggests the first of it."""

    def __init__(self):
        super().__init__(0, {})
        self.noted = {}

    def _suggested(self, name, distribution):
        if self.noted.setdefault(name, distribution) != distribution:
            raise UsageError(f'hyperparameter_search: hp_space suggests "{name}" twice, and not alike')
        return distribution["_value"][0]


def _range(name, low, high, step, log):
    if step is None:
        return space.loguniform(low, high) if log else space.uniform(low, high)
    if log or abs(low / step - round(low / step)) > 1e-9:
        raise UsageError(f'hyperparameter_search: "{name}" from {low} to {high} by steps of {step}: steps are multiples, and on no '
                         "logarithmic scale: want a low that is one")
    return space.quniform(low, high, step)


def _space_of(hp_space):
    if not callable(hp_space):
        return hp_space
    looking = _Looking()
    given = hp_space(looking)
    if looking.noted:
        return looking.noted
    if not isinstance(given, Mapping) or not all(isinstance(value, Mapping) and "_type" in value for value in given.values()):
        raise UsageError("hyperparameter_search: hp_space suggests nothing by its trial, and returns no search space: want "
                         'trial.suggest_float("learning_rate", 1e-6, 1e-4, log=True), or {"learning_rate": '
                         f"espalier.space.loguniform(1e-6, 1e-4)}}, got {given!r}")
    return dict(given)


# ---- in a trial's process

class _Reporting(transformers.TrainerCallback):
    def __init__(self, trial, compute):
        self._trial, self._compute = trial, compute
        self.objective = None

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        self.objective = self._compute(dict(metrics))
        self._trial.report(max(1, state.global_step), self.objective)


def _train(trainer, trial, hp_space, compute):
    """One trial, as transformers has it for its own backends."""
    seen = _Trial(trial.number, dict(trial.parameters))
    suggested = hp_space(seen) if hp_space is not None else seen
    if any(isinstance(value, Mapping) for value in suggested.values()):  # a search space, of which these are drawn
        suggested = seen
    _set(trainer.args, suggested)
    trainer.args.output_dir = os.path.join(trainer.args.output_dir, f"run-{trial.number}")
    # The arguments choose their device when they are asked for it, which must come before the accelerator is made.
    _logger.info("trial %d trains on %s", trial.number, trainer.args.device)
    trainer._train_batch_size = trainer.args.train_batch_size
    trainer.create_accelerator_and_postprocess()
    if number_of_arguments(trainer.model_init) == 1:
        trainer.model_init = functools.partial(trainer.model_init, seen)
    reporting = _Reporting(trial, compute)
    trainer.add_callback(reporting)
    started_again = "ESPALIER_LAST_STEP" in os.environ and os.path.isdir(trainer.args.output_dir)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(trainer.args.output_dir) if started_again else None)
    if reporting.objective is None:
        trainer.evaluate()
    return reporting.objective


def _set(args, suggested):
    """What is no training argument is for model_init."""
    for name, value in suggested.items():
        if not hasattr(args, name):
            _logger.warning("hyperparameter_search: %s is no training argument: model_init(trial) may read it", name)
            continue
        present = getattr(args, name)
        setattr(args, name, value if present is None else type(present)(value))
