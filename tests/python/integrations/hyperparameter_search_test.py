"""`hyperparameter_search` of a Trainer: as transformers' own, by trials that are processes."""
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import BIN, LONG_S, TunerTest  # noqa: E402

PROGRAM = """import sys
sys.path.insert(0, sys.argv[1])
import torch, train
from espalier import space
from espalier.errors import UsageError
from espalier.integrations.transformers import hyperparameter_search
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from transformers.trainer_utils import BestRun


def model_init(trial):
    torch.manual_seed(1)
    width = 16 if trial is None else trial.params["width"]
    return BertForSequenceClassification(BertConfig(vocab_size=40, hidden_size=width, num_hidden_layers=1, num_attention_heads=2,
                                                    intermediate_size=width, max_position_embeddings=16, num_labels=2))


def hp_space(trial):
    return {"learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True),
            "num_train_epochs": trial.suggest_int("num_train_epochs", 2, 3),
            "per_device_train_batch_size": 2 ** trial.suggest_int("log_batch", 4, 5),
            "width": trial.suggest_categorical("width", [16, 32])}


def refused(words, *arguments, **keys):
    try:
        hyperparameter_search(*arguments, **keys)
    except UsageError as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)


arguments = TrainingArguments("out", eval_strategy="epoch", save_strategy="epoch", report_to="none", disable_tqdm=True, use_cpu=True)
sets = {"train_dataset": train.Sentences(64, 1), "eval_dataset": train.Sentences(32, 2)}
trainer = Trainer(model_init=model_init, args=arguments, compute_metrics=train.accuracy, **sets)
before = trainer.model
by = {"slots": 2, "show": False, "sampler": "random", "seed": 1}
best = hyperparameter_search(trainer, hp_space, n_trials=2, direction="maximize", **by)
assert isinstance(best, BestRun) and best.run_id in ("0", "1"), best
assert set(best.hyperparameters) == {"learning_rate", "num_train_epochs", "log_batch", "width"}, best
assert best.objective == max(trial["value"] for trial in best.run_summary.trials), best
for trial in best.run_summary.trials:
    given = trial["parameters"]
    steps = [value["step"] for value in trial["values"]]
    an_epoch = 64 // 2 ** int(given["log_batch"])
    assert steps == [an_epoch * (n + 1) for n in range(int(given["num_train_epochs"]))], (steps, given)
assert trainer.model is before and trainer.args.output_dir == "out", "it is left as it was"

losses = hyperparameter_search(Trainer(model_init=lambda: model_init(None), args=arguments, **sets),
                               {"learning_rate": space.uniform(1e-4, 1e-3), "num_train_epochs": space.choice(1)},
                               lambda metrics: metrics["eval_loss"], n_trials=2, name="losses", **by)
assert losses.objective == min(trial["value"] for trial in losses.run_summary.trials), losses

refused("model_init=...", Trainer(model_init(None), arguments, **sets), hp_space)
refused('want "minimize" or "maximize"', trainer, hp_space, direction=["minimize", "maximize"])
refused("suggests nothing", trainer, lambda trial: {"learning_rate": 0.1})
refused("want a low that is one", trainer, lambda trial: trial.suggest_float("weight_decay", 0.05, 0.5, step=0.1))
print("done")
"""


class HyperparameterSearch(TunerTest):
    def test_of_a_trainer(self):
        program = self.write("program.py", PROGRAM)
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
        done = subprocess.run([sys.executable, program, str(ROOT / "examples/python_transformers")], cwd=self.dir, text=True,
                              capture_output=True, timeout=LONG_S, env=environment)
        self.assertEqual(done.stdout.splitlines()[-1:], ["done"], done.stdout + done.stderr)
        saved = sorted(path.parent.name for path in self.dir.glob("out/run-*/checkpoint-*"))
        self.assertEqual(set(saved), {"run-0", "run-1"})


if __name__ == "__main__":
    unittest.main()
