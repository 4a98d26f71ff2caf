"""Lightning's strategy of one replica: a process with one device, which steps with its group."""
from collections.abc import Mapping

import torch
from lightning.pytorch.strategies import SingleDeviceStrategy

import espalier.torch as adl
from espalier import _library
from espalier._runtime import runtime
from espalier.errors import UsageError
from espalier.integrations._lightning_group import InGroup
from espalier.integrations._lightning_manual import ManualSteps
from espalier.torch.evaluation import summed

NAME = "espalier.lightning_trainer"


class ReplicaStrategy(InGroup, SingleDeviceStrategy):
    strategy_name = "espalier"

    def __init__(self, device, scaling_rule, step_order):
        super().__init__(device=device)
        self._scaling_rule = scaling_rule
        self._step_order = step_order
        self.parallel = None
        self.manual = None  # where the module takes its steps by itself
        self.loss = None    # of the last batch, if it has one

    # ---- the step

    def setup(self, trainer):
        super().setup(trainer)
        if trainer.state.fn != "fit" or self.parallel is not None:
            return
        schedulers = [config.scheduler for config in self.lr_scheduler_configs]
        scaler = getattr(self.precision_plugin, "scaler", None)
        if not self.lightning_module.automatic_optimization:
            self.manual = ManualSteps(self.lightning_module, self.optimizers, schedulers, scaler, self._scaling_rule,
                                      self._step_order)
            self.parallel = self.manual.first
            return
        if len(self.optimizers) != 1:
            raise UsageError(f"ElasticTrainer: configure_optimizers gives {len(self.optimizers)} optimizers: want one, or "
                             "several with automatic_optimization=False")
        self.refuse_frequencies(trainer.accumulate_grad_batches)
        for config in self.lr_scheduler_configs:
            if config.interval == "step" and config.reduce_on_plateau:
                raise UsageError('ElasticTrainer: a ReduceLROnPlateau has interval "step": want "epoch": within one each '
                                 "replica has seen samples of its own")
        self.parallel = adl.AdaptiveDataParallel(self.lightning_module, self.optimizers[0], schedulers, scaler,
                                                 self._scaling_rule)

    def refuse_frequencies(self, accumulation):
        for config in self.lr_scheduler_configs:
            if config.interval == "step" and config.frequency != 1 and accumulation != 1:
                raise UsageError(f'ElasticTrainer: a scheduler has interval "step" and frequency {config.frequency}, and '
                                 f"accumulate_grad_batches is {accumulation}: want 1 for one of them: replicas count batches "
                                 "of their own where a step has several")

    def dropped(self):
        """Whether the last batch came to nothing here: it is done again, or others have done it."""
        return self.manual.dropped() if self.manual else self.parallel.outcome == _library.DROPPED

    @property
    def handles_gradient_accumulation(self):
        return True  # optimizer_step comes for each batch

    def optimizer_step(self, optimizer, closure, model=None, **kwargs):
        if self.manual:
            return self._manual_step(optimizer, closure, **kwargs)

        def loss():
            self.loss = closure()
            if self.loss is None:
                raise UsageError("ElasticTrainer: training_step returned None: want a loss of each batch, since other replicas "
                                 "wait for its gradients")
            return self.loss

        plugin, module = self.precision_plugin, self.lightning_module
        if getattr(plugin, "scaler", None) is not None:
            return plugin.optimizer_step(optimizer, model=module, closure=loss, **kwargs)
        # Only in a step's last batch are there gradients to look at and to clip.
        result = loss() if self._accumulates() else plugin._wrap_closure(module, optimizer, loss)
        optimizer.step(**kwargs)
        return result

    @staticmethod
    def _accumulates():
        return runtime().current_loader.before_last

    # ---- a module that steps by itself

    def _manual_step(self, optimizer, closure, **kwargs):
        plugin, module = self.precision_plugin, self.lightning_module
        if getattr(plugin, "scaler", None) is not None:
            result = plugin.optimizer_step(optimizer, model=module, closure=closure, **kwargs)
        else:
            result = plugin._wrap_closure(module, optimizer, closure)
            optimizer.step(**kwargs)
        self.manual.count(optimizer)
        return result

    def backward(self, closure_loss, optimizer, *args, **kwargs):
        if not self.manual:
            return super().backward(closure_loss, optimizer, *args, **kwargs)
        self.manual.before_backward()
        loss = super().backward(closure_loss, optimizer, *args, **kwargs)
        self.manual.after_backward()
        return loss

    def training_step(self, *args, **kwargs):
        output = super().training_step(*args, **kwargs)
        if self.manual:
            self.manual.end_batch()
            loss = output.get("loss") if isinstance(output, Mapping) else output
            self.loss = loss.detach() if isinstance(loss, torch.Tensor) else None
        return output

    # ---- between replicas

    def reduce(self, tensor, *args, **kwargs):
        return tensor  # metrics are merged where an epoch's training ends; validation is whole on each replica

    def all_gather(self, tensor, group=None, sync_grads=False):
        if sync_grads or runtime().current_loader is not None:
            raise UsageError("ElasticTrainer: all_gather is for where all replicas come to it, such as "
                             "on_train_epoch_end, and without gradients")
        own = {"parts": [(adl.rank(), tensor.detach().cpu())]}
        parts = (summed(runtime(), NAME, lambda: own) if runtime().joined else own)["parts"]
        return torch.stack([part for _, part in sorted(parts, key=lambda of: of[0])]).to(tensor.device)

    def teardown(self):
        """The model stays where it is: the trial's last checkpoint may still be made of it."""
        self.precision_plugin.teardown()
        self.checkpoint_io.teardown()
