"""A program with Lightning's Trainer, for lightning_trainer_test.py and lightning_manual_test.py: alone or under a tuner."""
import argparse
import pathlib

from lightning.pytorch.callbacks import Callback
from lightning_gan import Adversaries
from lightning_module import Regression, loaders
from small_program import values

import espalier
import espalier.torch as adl
from espalier.integrations.lightning import ElasticTrainer


class Validations(Callback):
    """How many there were, logged with what else a joining replica has to know. It ends training after the epoch in which
    any replica sees the file, and fails where replicas have come to different parameters."""

    def __init__(self, stop):
        self.stop = stop
        self.count = 0

    def on_train_epoch_start(self, trainer, module):
        # One that joins within the epoch comes here alone.
        if adl.evaluate(lambda indices: {"samples": len(indices)}, 10, 4) != {"samples": 10}:
            raise RuntimeError("an evaluation before the epoch's loop was of other samples")

    def on_train_epoch_end(self, trainer, module):
        own = values(module).double().sum().item()
        seen = adl.evaluate(lambda _: {"stop": float(self.stop.exists()), "replicas": 1, "sum": own, "squares": own * own},
                            adl.replicas(), 1)
        if seen["stop"]:
            trainer.should_stop = True
        if abs(seen["squares"] * seen["replicas"] - seen["sum"] ** 2) > 1e-9 * seen["sum"] ** 2:
            raise RuntimeError(f"replicas have come to different parameters: {seen}")

    def on_validation_epoch_end(self, trainer, module):
        if not trainer.sanity_checking:
            self.count += 1
            optimizers = module.optimizers()
            rate = (optimizers[0] if isinstance(optimizers, list) else optimizers).param_groups[0]["lr"]
            module.log_dict({"validations": float(self.count), "steps": float(trainer.global_step), "rate": rate})

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


class Accumulation(Callback):
    """Sets another one for each epoch: where it begins, or where the one before ends."""

    def __init__(self, where):
        self.where = where

    def on_train_epoch_start(self, trainer, module):
        if self.where == "start":
            trainer.accumulate_grad_batches = 1 + trainer.current_epoch % 3

    def on_train_epoch_end(self, trainer, module):
        if self.where == "end":
            trainer.accumulate_grad_batches = 1 + (trainer.current_epoch + 1) % 3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stop", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=100_000)
    parser.add_argument("--manual", help="the way of a module that takes its steps by itself")
    parser.add_argument("--interval", type=int, help="batches between validations")
    parser.add_argument("--limit", type=int, help="batches of an epoch")
    parser.add_argument("--accumulation", help="where it is set")
    parser.add_argument("--set", action="append")
    arguments = parser.parse_args()
    trial = espalier.trial()
    lr, pause_s = trial.get("lr", 0.003), 0.01 if trial.elastic else 0.0
    training, held_out = loaders(samples=30 * 32, shuffle=True)
    if arguments.manual:
        trainer = ElasticTrainer(max_epochs=arguments.epochs, trial_metric="val_loss", callbacks=[Validations(arguments.stop)],
                                 step_order=[1, 0] if arguments.manual == "critic first" else None)
        trainer.fit(Adversaries(arguments.manual, lr, pause_s), training, held_out)
        return
    if arguments.limit:
        trainer = ElasticTrainer(max_epochs=arguments.epochs, trial_metric="val_loss", callbacks=[Validations(arguments.stop)],
                                 limit_train_batches=arguments.limit, val_check_interval=arguments.interval)
        trainer.fit(Regression(lr=lr, pause_s=pause_s, adam=False), training, held_out)
        return
    module = Regression(lr=lr, pause_s=pause_s, adam=False)
    if arguments.accumulation:
        trainer = ElasticTrainer(max_epochs=arguments.epochs, trial_metric="val_loss",
                                 callbacks=[Validations(arguments.stop), Accumulation(arguments.accumulation)])
        trainer.fit(module, training, held_out)
        return
    trainer = ElasticTrainer(max_epochs=arguments.epochs, trial_metric="val_loss", gradient_clip_val=5.0,
                             callbacks=[Validations(arguments.stop)])
    trainer.fit(module, training, held_out)


if __name__ == "__main__":
    main()
