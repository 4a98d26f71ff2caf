"""Lightning's Trainer and Fabric's loops as elastic trials.

    trial = espalier.trial()
    trainer = ElasticTrainer(max_epochs=10, trial_metric="val_loss")
    trainer.fit(Module(lr=trial.get("lr", 0.1)), train_loader, val_loader)

or

    trial = espalier.trial()
    fabric = Fabric(strategy=ElasticStrategy(), accelerator="auto", devices=1)
    model, optimizer = fabric.setup(model, optimizer)
    loader = fabric.setup_dataloaders(adl.AdaptiveDataLoader(dataset, batch_size=64, shuffle=True))
    for epoch in adl.epochs(10):
        for x, y in loader:
            fabric.backward(loss_of(model(x), y))
            optimizer.step()
"""
import torch

try:
    from lightning.fabric.strategies import SingleDeviceStrategy
    from lightning.pytorch import Callback
    from lightning.pytorch.callbacks import ModelCheckpoint
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"espalier.integrations.lightning needs {error.name}: pip install 'lightning==2.6.*'",
                              name=error.name) from error

import espalier
import espalier.torch as adl
from espalier._runtime import runtime
from espalier.errors import UsageError
from espalier.integrations._callbacks import Told, is_kept
from espalier.integrations._lightning_group import InGroup
from espalier.integrations._lightning_trainer import ElasticTrainer
from espalier.torch.evaluation import summed

__all__ = ["ElasticStrategy", "ElasticTrainer", "TrialCallback"]

_NAME = "espalier.lightning"


class ElasticStrategy(InGroup, SingleDeviceStrategy):
    """Fabric's strategy for a trial that is resized while it trains: one process a replica, each with one device.

    `fabric.setup(model, optimizer, scheduler=scheduler)` wraps all three; each model takes its optimizers along. Loaders are
    AdaptiveDataLoaders, which accumulate where a step does not fit, and loops stand in one over `espalier.torch`'s epochs.
    `all_reduce`, `all_gather`, `broadcast` and `barrier` are for the end of an epoch, where all replicas come to them.

    scaling_rule: as of AdaptiveDataParallel, like the options after it.
    """

    def __init__(self, *, scaling_rule=None, **options):
        super().__init__(device=espalier.trial().device)
        self._scaling_rule = scaling_rule
        self._options = options
        self._models = 0

    # ---- models and optimizers

    def setup_module_and_optimizers(self, module, optimizers, scheduler=None):
        self._models += 1
        name = {} if self._models == 1 else {"name": f"model-{self._models}"}
        wrapped = adl.AdaptiveDataParallel(module, optimizers, scheduler, getattr(self.precision, "scaler", None),
                                           self._scaling_rule, **name, **self._options)
        return wrapped, optimizers, scheduler

    def setup_module(self, module):
        if any(p.requires_grad for p in module.parameters()):
            raise UsageError("ElasticStrategy: the model was set up without its optimizers: fabric.setup(model, optimizer)")
        return module

    def setup_optimizer(self, optimizer):
        raise UsageError("ElasticStrategy: the optimizer was set up without its model: fabric.setup(model, optimizer)")

    def get_module_state_dict(self, module):
        return super().get_module_state_dict(_plain(module))

    def load_module_state_dict(self, module, state_dict, strict=True):
        super().load_module_state_dict(_plain(module), state_dict, strict)

    # ---- between replicas

    def all_reduce(self, tensor, group=None, reduce_op="mean"):
        operation = str(reduce_op).rpartition(".")[2].lower()
        if operation not in ("mean", "avg", "sum"):
            raise UsageError(f'ElasticStrategy.all_reduce: reduce_op is {reduce_op!r}: want "mean" or "sum"')
        value = tensor if isinstance(tensor, torch.Tensor) else torch.tensor(tensor)
        got = self._summed({"value": value.detach().cpu(), "replicas": 1})
        total = got["value"].to(value.device)
        total = total if operation == "sum" else total / got["replicas"]
        if isinstance(tensor, torch.Tensor) and total.dtype == tensor.dtype:
            return tensor.copy_(total)  # in place, as others do
        return total

    def all_gather(self, tensor, group=None, sync_grads=False):
        if sync_grads:
            raise UsageError("ElasticStrategy.all_gather: gradients do not go through it: want sync_grads=False")
        parts = self._summed({"parts": [(adl.rank(), tensor.detach().cpu())]})["parts"]
        return torch.stack([part for _, part in sorted(parts, key=lambda of: of[0])]).to(tensor.device)

    def broadcast(self, obj, src=0):
        if not runtime().joined:
            return obj  # a replica is alone until the first epoch
        return self._summed({"parts": [obj]} if adl.rank() == src else {"parts": []})["parts"][0]

    def barrier(self, *args, **kwargs):
        if runtime().joined:
            self._summed({"replicas": 1})

    def _summed(self, own):
        return summed(runtime(), _NAME, lambda: own) if runtime().joined else own


def _plain(module):
    return module.module if isinstance(module, adl.AdaptiveDataParallel) else module


class TrialCallback(Callback):
    """For a Trainer that nobody changed, such as Trainer(devices=4, strategy="ddp"): its validations are the trial's values,
    and it ends when the trial is to, at the same step in all processes.

        Trainer(devices=4, strategy="ddp", callbacks=[TrialCallback()])

    trial_metric: which of what the module logs (default: "val_loss"). Log it with `sync_dist=True`, so that all processes have
    the same, or let the study say `"ranks": "mean"`. Steps are epochs or, where an epoch has several validations, the Trainer's
    steps.

    With a ModelCheckpoint that has `save_last` and a `dirpath` in the trial's folder for checkpoints, it also ends after an
    epoch, with its checkpoint, when the trial is to go on elsewhere or later, such as on another number of slots:
    `fit(..., ckpt_path="last")` goes on from there.
    """

    def __init__(self, trial_metric=None):
        self._wanted = trial_metric
        self._told = None
        self._keeps = None  # the ModelCheckpoint
        self._stops = False  # since the trial is to

    def on_fit_start(self, trainer, pl_module):
        self._told = Told("TrialCallback", self._wanted or "val_loss", trainer.global_rank, trainer.world_size)
        kept = [own for own in trainer.checkpoint_callbacks
                if isinstance(own, ModelCheckpoint) and own.save_last and own.dirpath and is_kept(own.dirpath)]
        self._keeps = kept[0] if kept else None

    def on_train_epoch_end(self, trainer, pl_module):
        # An epoch that was left within would be taken for a whole one.
        ends = trainer.should_stop and not self._stops or not trainer.is_last_batch
        ends = ends or trainer.current_epoch + 1 == trainer.max_epochs or trainer.global_step == trainer.max_steps
        if self._keeps is not None and not ends and self._told.to_save(trainer.global_step):
            trainer.should_stop = True

    def on_train_end(self, trainer, pl_module):
        # It may save less often than each epoch.
        if self._told.goes_on_later and self._keeps._last_global_step_saved != trainer.global_step:
            self._keeps._save_last_checkpoint(trainer, self._keeps._monitor_candidates(trainer))

    def on_validation_end(self, trainer, pl_module):
        if trainer.sanity_checking or self._told is None:
            return
        whole = trainer.val_check_batch >= trainer.num_training_batches
        step = trainer.current_epoch + 1 if whole else trainer.global_step
        metrics = {name: value.item() for name, value in trainer.callback_metrics.items() if value.numel() == 1}
        if self._told.report(step, metrics):
            trainer.should_stop = self._stops = True

    def on_fit_end(self, trainer, pl_module):
        told, self._told = self._told, None
        told.end()
