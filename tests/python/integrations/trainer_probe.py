"""The example's program without dropout, which reports besides what Trainer and a callback have counted."""
import argparse
import pathlib
import sys
import tempfile
from time import sleep as pause

from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "examples/python_transformers"))
import espalier  # noqa: E402
from espalier.integrations.transformers import ElasticTrainer  # noqa: E402
from train import Sentences, accuracy, make_arguments, make_model  # noqa: E402


class Evaluations(TrainerCallback, ExportableState):
    """How many there were."""

    def __init__(self):
        self.count = 0

    def on_evaluate(self, args, state, control, **kwargs):
        self.count += 1

    def state(self):
        return {"args": {}, "attributes": {"count": self.count}}


class Unhurried(TrainerCallback):
    """Steps take their time until the file is there: meanwhile others come and go, and training is not to end before."""

    def __init__(self, file):
        self.file = file

    def on_step_begin(self, args, state, control, **kwargs):
        if not self.file.exists():
            pause(0.5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--hurry", type=pathlib.Path, default="/", help="a file: steps take their time until it is there")
    parser.add_argument("--set", action="append")
    arguments = parser.parse_args()
    trial = espalier.trial()
    evaluations = Evaluations()

    def metrics(prediction):
        return {**accuracy(prediction), "evaluations": evaluations.count, "steps": trainer.state.global_step,
                "logs": len(trainer.state.log_history), "rate": trainer.lr_scheduler.get_last_lr()[0],
                "train_loss": trainer.state.log_history[-1]["loss"]}

    with tempfile.TemporaryDirectory() as folder:
        trainer = ElasticTrainer(make_model(trial), make_arguments(trial, folder, arguments.epochs),
                                 train_dataset=Sentences(arguments.samples, seed=1), eval_dataset=Sentences(500, seed=2),
                                 compute_metrics=metrics, callbacks=[evaluations, Unhurried(arguments.hurry)])
        result = trainer.train()
    print(f"{result.global_step} steps, train_loss {result.training_loss:.6f}", flush=True)


if __name__ == "__main__":
    main()
