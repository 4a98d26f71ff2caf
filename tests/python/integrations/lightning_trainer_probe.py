"""A program with Lightning's Trainer, for lightning_trainer_test.py: alone or under a tuner."""
import argparse
import pathlib

from lightning.pytorch.callbacks import Callback
from lightning_module import Regression, loaders

import espalier
import espalier.torch as adl
from espalier.integrations.lightning import ElasticTrainer


class Validations(Callback):
    """How many there were, logged with what else a joining replica has to know. It ends training before the epoch in which
    any replica sees the file."""

    def __init__(self, stop):
        self.stop = stop
        self.count = 0

    def on_train_epoch_start(self, trainer, module):
        if adl.evaluate(lambda _: {"stop": float(self.stop.exists())}, 1, 1)["stop"]:
            trainer.should_stop = True

    def on_validation_epoch_end(self, trainer, module):
        if not trainer.sanity_checking:
            self.count += 1
            rate = module.optimizers().param_groups[0]["lr"]
            module.log_dict({"validations": float(self.count), "steps": float(trainer.global_step), "rate": rate})

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stop", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=100_000)
    parser.add_argument("--set", action="append")
    arguments = parser.parse_args()
    trial = espalier.trial()
    module = Regression(lr=trial.get("lr", 0.003), pause_s=0.01 if trial.elastic else 0.0, adam=False)
    training, held_out = loaders(samples=30 * 32, shuffle=True)
    trainer = ElasticTrainer(max_epochs=arguments.epochs, trial_metric="val_loss", gradient_clip_val=5.0,
                             callbacks=[Validations(arguments.stop)])
    trainer.fit(module, training, held_out)


if __name__ == "__main__":
    main()
