"""Programs that zero gradients between two backward passes of a batch: as trials, and in plain PyTorch. All samples are in
each step, so that the order in which they are dealt makes no difference.

usage: zeroed.py FILES: the weights come to FILES-WAY-RANK"""
import sys

import torch

import espalier
import espalier.torch as adl
from small_program import data, mse, net

WAYS = ("generator first", "adversarial", "sharpness", "head")
STEPS, SAMPLES = 5, 40


def _generator_first(models, optimizers, x, _):
    """The generator's loss brings gradients to the critic as well, which its own step is not to have."""
    (generator, critic), (of_generator, of_critic) = models, optimizers
    of_generator.zero_grad()
    (-critic(generator(x[:, :1]).expand(-1, 6))).mean().backward()
    of_generator.step()
    of_critic.zero_grad()
    (critic(generator(x[:, :1]).detach().expand(-1, 6)).mean() - critic(x).mean()).backward()
    of_critic.step()


def _adversarial(models, optimizers, x, y):
    (model,), (optimizer,) = models, optimizers
    x.requires_grad_()
    mse(model(x), y).backward()
    other = (x + 0.1 * x.grad.sign()).detach()
    optimizer.zero_grad()
    mse(model(other), y).backward()
    optimizer.step()


def _sharpness(models, optimizers, x, y):
    """Where the gradients of the first pass lead is where those that count are taken."""
    (model,), (optimizer,) = models, optimizers
    mse(model(x), y).backward()
    with torch.no_grad():
        aside = [0.01 * p.grad for p in model.parameters()]
        for p, d in zip(model.parameters(), aside):
            p.add_(d)
    optimizer.zero_grad()
    mse(model(x), y).backward()
    with torch.no_grad():
        for p, d in zip(model.parameters(), aside):
            p.sub_(d)
    optimizer.step()


def _head(models, optimizers, x, y):
    """The first layer is in no optimizer, and not frozen."""
    (model,), (optimizer,) = models, optimizers
    model.zero_grad()
    mse(model(x), y).backward()
    torch.nn.utils.clip_grad_norm_(model[2].parameters(), 0.1)
    optimizer.step()


STEP = {"generator first": _generator_first, "adversarial": _adversarial, "sharpness": _sharpness, "head": _head}


def _made(way):
    models = [net(seed=1, features=1), net(seed=2)] if way == "generator first" else [net()]
    trained = [m[2] if way == "head" else m for m in models]
    return models, [torch.optim.SGD(m.parameters(), 0.02, momentum=0.9) for m in trained]


def _values(models):
    return torch.cat([p.detach().reshape(-1) for model in models for p in model.parameters()])


def plain(way):
    models, optimizers = _made(way)
    x, y = data(SAMPLES)
    for _ in range(STEPS):
        STEP[way](models, optimizers, x.clone(), y)
        for model in models:
            model.zero_grad()
    return _values(models)


def train(way, epochs=STEPS):
    models, optimizers = _made(way)
    for number, (model, optimizer) in enumerate(zip(models, optimizers)):
        adl.AdaptiveDataParallel(model, optimizer, scaling_rule="linear", name=f"{number}")
    loader = adl.AdaptiveDataLoader(torch.utils.data.TensorDataset(*data(SAMPLES)), batch_size=SAMPLES)
    for _ in adl.remaining_epochs_until(epochs):
        for x, y in loader:
            STEP[way](models, optimizers, x, y)
    return _values(models)


def main():
    trial = espalier.trial()
    way = trial["way"]
    values = train(way)
    torch.save(values, f"{sys.argv[1]}-{way}-{adl.rank()}")
    trial.report(STEPS, 0.0)


if __name__ == "__main__":
    main()
