"""Fine-tunes a tiny BERT for classification with Hugging Face's Trainer, as an elastic trial. Model and data are made here:
nothing is downloaded.

    python3 train.py [--epochs N] [--set name=value ...]     alone
    tuner run study.json --slots 2                           under the tuner
"""
import argparse
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, TrainingArguments

import espalier
from espalier.integrations.transformers import ElasticTrainer

WORDS, LENGTH = 40, 16


class Sentences(Dataset):
    """Random words; the class is whether the first word of the lower half comes before the middle."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.words = torch.randint(WORDS // 2, WORDS, (count, LENGTH), generator=generator)
        places = torch.randint(0, LENGTH, (count,), generator=generator)
        self.words[torch.arange(count), places] = torch.randint(1, WORDS // 2, (count,), generator=generator)
        self.labels = (places < LENGTH // 2).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"input_ids": self.words[index], "labels": self.labels[index]}


def accuracy(prediction):
    return {"accuracy": float((np.argmax(prediction.predictions, axis=1) == prediction.label_ids).mean())}


def make_model(trial):
    torch.manual_seed(trial.seed)
    width = trial.get("width", 32)
    dropout = trial.get("dropout", 0.1)
    return BertForSequenceClassification(BertConfig(
        vocab_size=WORDS, hidden_size=width, num_hidden_layers=2, num_attention_heads=2, intermediate_size=2 * width,
        max_position_embeddings=LENGTH, num_labels=2, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout))


def make_arguments(trial, folder, epochs, **more):
    return TrainingArguments(
        folder, num_train_epochs=epochs, learning_rate=trial.get("lr", 3e-3), weight_decay=0.01, warmup_steps=20,
        per_device_train_batch_size=trial.get("batch_size", 64), per_device_eval_batch_size=250, eval_strategy="epoch",
        logging_strategy="epoch", save_strategy="no", report_to="none", disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(), **more)


def main():
    trial = espalier.trial()  # first: it takes each --set from the command line
    parser = argparse.ArgumentParser(epilog="--set NAME=VALUE gives a parameter, where there is no tuner.")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=4000)
    arguments = trial.arguments(parser.parse_args())

    with tempfile.TemporaryDirectory() as folder:
        trainer = ElasticTrainer(
            make_model(trial), make_arguments(trial, folder, arguments.epochs),
            train_dataset=Sentences(arguments.samples, seed=1), eval_dataset=Sentences(500, seed=2),
            compute_metrics=accuracy, trial_metric="accuracy")
        trainer.train()


if __name__ == "__main__":
    main()
