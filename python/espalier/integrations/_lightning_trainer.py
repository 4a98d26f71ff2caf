"""Lightning's Trainer as an elastic trial. Its loop over epochs and batches is Lightning's, but for what replicas share."""
import datetime
import warnings

import lightning
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Checkpoint

import espalier
from espalier.errors import UsageError
from espalier.integrations._lightning_loaders import Accumulation
from espalier.integrations._lightning_loops import EpochLoop, FitLoop
from espalier.integrations._lightning_strategy import ReplicaStrategy

_TESTED = "2.6."


class ElasticTrainer(Trainer):
    """A Trainer for trials that are resized while they train. `fit` is called once in a process.

    The batch_size of the training loader times `accumulate_grad_batches` is the batch of all replicas together; a
    `training_step` gets at most batch_size samples. What is set as `accumulate_grad_batches` later, as
    GradientAccumulationScheduler does, is that of the next epoch, or of the present one before its first batch. Loaders are plain DataLoaders (or, for training, AdaptiveDataLoaders).
    Without accumulation `batch_idx` is the step of the epoch, which all replicas share, and so are the batches that
    `limit_train_batches` and `val_check_interval` count.
    What `training_step` logs for an epoch is of all samples of all replicas, but for what a replica that is lost had logged in
    that epoch. What it logs for a step, and torchmetrics' objects, are of the replica's own samples. Validation is done whole by
    each replica, so that all come to the same metrics and the same decisions. Callbacks' states and counters are handed to
    replicas that join. Rank 0 writes checkpoints and logs; the trial's own checkpoints, from which it goes on, are Espalier's.

    Modules with `automatic_optimization = False` have one or several optimizers, each with parameters of its own, and step
    each once a batch or not at all, in one order. A batch starts afresh: gradients do not add up over batches.

    trial_metric: which of the logged metrics is reported to the trial after each epoch with a validation, or each epoch where
    there is none (default: "val_loss" where it is logged, of several validation loaders the first one's, else the epoch's mean
    training loss), with the other ones beside it.
    scaling_rule: as of AdaptiveDataParallel.
    step_order: of manual optimization, in which order training_step steps its optimizers: [1, 0] where it steps the second one
    of configure_optimizers first (default: in the order in which that gives them).
    Other arguments are Trainer's. Without arguments there is no logger, and ModelCheckpoint only if it is among the callbacks.
    """

    def __init__(self, *, trial_metric=None, scaling_rule=None, step_order=None, **arguments):
        if not lightning.__version__.startswith(_TESTED):
            warnings.warn(f"ElasticTrainer was tested with lightning {_TESTED}*, and this is {lightning.__version__}: its "
                          "Trainer may have changed", stacklevel=2)
        trial = espalier.trial()
        _refuse_arguments(arguments)
        callbacks = arguments.get("callbacks") or []
        callbacks = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
        defaults = {"logger": False, "enable_progress_bar": not trial.elastic, "enable_model_summary": not trial.elastic,
                    "enable_checkpointing": any(isinstance(c, Checkpoint) for c in callbacks)}
        self.accumulation = Accumulation(self)
        super().__init__(**defaults | arguments, devices=1, accelerator="cpu" if trial.device.type == "cpu" else "gpu",
                         strategy=ReplicaStrategy(trial.device, scaling_rule, step_order))
        self.trial_metric = trial_metric
        epoch_loop = EpochLoop(self, min_steps=self.fit_loop.min_steps, max_steps=self.fit_loop.max_steps)
        self.fit_loop = FitLoop(self, min_epochs=self.fit_loop.min_epochs, max_epochs=self.fit_loop.max_epochs)
        self.fit_loop.epoch_loop = epoch_loop

    def fit(self, model, train_dataloaders=None, val_dataloaders=None, datamodule=None, ckpt_path=None, weights_only=None):
        if ckpt_path is not None:
            raise UsageError(f"ElasticTrainer.fit: ckpt_path is {ckpt_path!r}: want None: a trial goes on from its own "
                             "checkpoints by itself. To begin with a trained model, make it by its load_from_checkpoint(path)")
        self.accumulation.refuse_manual(self.accumulate_grad_batches, model)
        super().fit(model, train_dataloaders, val_dataloaders, datamodule, weights_only=weights_only)


    @property
    def accumulate_grad_batches(self):
        """How many of the training loader's batches make a step: of the next step to come, as far as is known."""
        return self.accumulation.count

    @accumulate_grad_batches.setter
    def accumulate_grad_batches(self, count):
        self.accumulation.set(count)

    @property
    def estimated_stepping_batches(self):
        """Steps of the trial, if `accumulate_grad_batches` stays what it is."""
        if self.max_epochs == -1:
            return super().estimated_stepping_batches
        if self.train_dataloader is None:
            self.fit_loop.setup_data()
        steps = self.num_training_batches * max(self.max_epochs, 1)
        return steps if self.max_steps == -1 else min(steps, self.max_steps)


def _refuse_arguments(given):
    """What the replicas of a trial cannot share, or what their engine does itself."""
    for name, allowed, right in (
            ("strategy", ("auto",), "none: ElasticTrainer brings its own, and the tuner says how many replicas there are"),
            ("accelerator", ("auto",), "none: the trial's slot says which device there is"),
            ("devices", ("auto", 1, "1"), "1: each replica is a process with one device"),
            ("num_nodes", (1,), "1: the pool decides on which machines replicas are"),
            ("sync_batchnorm", (False, None), "False: convert the module by torch.nn.SyncBatchNorm.convert_sync_batchnorm"),
            ("overfit_batches", (0, 0.0), "0, and a training loader of the Subset to fit"),
            ("fast_dev_run", (False, 0), "False: max_steps=1 is as short, or Lightning's own Trainer"),
            ("reload_dataloaders_every_n_epochs", (0,), "0: an IterableDataset is told the epoch by its set_epoch"),
            ("barebones", (False,), "False: without arguments there are no logger and no checkpoints either")):
        value = given.pop(name, allowed[0])
        if value not in allowed:
            raise UsageError(f"ElasticTrainer: {name} is {value!r}: want {right}")
    interval = given.get("val_check_interval")
    if isinstance(interval, (str, dict, datetime.timedelta)):
        raise UsageError(f"ElasticTrainer: val_check_interval is {interval!r}: want a number of batches, or a share of an "
                         "epoch: replicas' clocks differ")
