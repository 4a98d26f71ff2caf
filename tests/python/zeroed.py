"""A program that zeroes gradients between two backward passes of a batch, or sets them itself, and the same as a plain loop. How
it does is its parameter "way", and "most" the samples of one forward pass, or 0."""
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch.utils.data import TensorDataset

from small_program import data, net, plain_batches

EPOCHS = 3
BATCH = 10
# By whether a batch may come in several pieces: where gradients are looked at, it may not.
CUT = ("adversaries", "perturbed", "module", "kept", "other_part", "nothing", "two_optimizers", "held", "by_hand")
WHOLE = ("sharpness", "set_to_none", "of_module", "restored")
WAYS = CUT + WHOLE


class Job:
    def __init__(self, way):
        self.way = way
        self.x, self.y = data(45)  # the last step of an epoch is shorter
        self.models = [net(), net(seed=9, features=1)] if way == "adversaries" else [net()]
        self.modules = list(self.models)
        groups = [list(model.parameters()) for model in self.models]
        if way in ("two_optimizers", "kept"):
            groups = [list(layer.parameters()) for layer in (self.models[0][0], self.models[0][2])]
        self.optimizers = [torch.optim.SGD(group, 0.02, momentum=0.9, weight_decay=0.1) for group in groups]

    def wrap(self, adl):
        if len(self.models) == len(self.optimizers):
            self.models = [adl.AdaptiveDataParallel(model, optimizer, name=f"model-{i}")
                           for i, (model, optimizer) in enumerate(zip(self.models, self.optimizers))]
        else:
            self.models = [adl.AdaptiveDataParallel(self.models[0], self.optimizers)]

    def step(self, x, y, number):
        """`number`: of the step, from 1."""
        model, optimizer = self.models[0], self.optimizers[0]
        if self.way == "two_optimizers":
            for each in self.optimizers:
                each.zero_grad()
            F.mse_loss(model(x), y).backward()
            for each in self.optimizers:
                each.step()
                each.zero_grad()
            return
        if self.way in ("adversaries", "by_hand", "restored"):
            getattr(self, self.way)(x, y)
            return
        optimizer.zero_grad()
        first = self.first_loss(model, x, y)
        if self.way == "held" and hasattr(model, "no_sync"):
            with model.no_sync():
                first.backward()
        else:
            first.backward()
        if self.way == "perturbed":
            x = (x + 0.1 * x.grad.sign()).detach()
        with torch.no_grad():
            moved = self.move(model) if self.way == "sharpness" else []
        self.zero(number)
        if self.way != "nothing":
            self.second_loss(model, x, y).backward()
        with torch.no_grad():
            for p, by in moved:
                p.sub_(by)
        for each in self.optimizers:
            each.step()

    def adversaries(self, x, y):
        """The maker steps first, and its loss leaves gradients on the judge."""
        (maker, judge), (of_maker, of_judge) = self.models, self.optimizers
        of_maker.zero_grad()
        made = maker(x)
        F.softplus(-judge(made)).mean().backward()
        of_maker.step()
        of_judge.zero_grad()
        (F.softplus(-judge(y)).mean() + F.softplus(judge(made.detach())).mean()).backward()
        of_judge.step()

    def by_hand(self, x, y):
        optimizer, parameters = self.optimizers[0], list(self.modules[0].parameters())
        optimizer.zero_grad()
        for p, gradient in zip(parameters, torch.autograd.grad(F.mse_loss(self.models[0](x), y), parameters)):
            p.grad = gradient
        optimizer.step()

    def restored(self, x, y):
        """As where the gradients of several losses are merged."""
        optimizer, parameters = self.optimizers[0], list(self.modules[0].parameters())
        optimizer.zero_grad()
        F.mse_loss(self.models[0](x), y).backward()
        kept = [p.grad.clone() for p in parameters]
        optimizer.zero_grad()
        for p, gradient in zip(parameters, kept):
            p.grad = gradient
        optimizer.step()

    def first_loss(self, model, x, y):
        if self.way == "perturbed":
            x.requires_grad_()
        return F.mse_loss(model(x), y)

    def second_loss(self, model, x, y):
        if self.way == "other_part":  # the first layer has a gradient by the first loss alone
            return self.modules[0][2](x.repeat(1, 3)[:, :16]).pow(2).mean()
        return model(x).abs().mean()

    def move(self, model):
        gradients = [p.grad for p in self.modules[0].parameters()]
        norm = torch.cat([g.reshape(-1) for g in gradients]).norm()
        moved = [(p, 0.05 * g / norm) for p, g in zip(self.modules[0].parameters(), gradients)]
        for p, by in moved:
            p.add_(by)
        return moved

    def zero(self, number):
        if self.way == "module":
            self.models[0].zero_grad(set_to_none=True)
        elif self.way == "of_module":
            self.modules[0].zero_grad()
        elif self.way == "set_to_none":
            for p in self.modules[0].parameters():
                p.grad = None
        elif self.way != "nothing" or number % 2 == 0:  # of "kept", half of the model
            self.optimizers[0].zero_grad()

    def outcome(self):
        return torch.cat([p.detach().reshape(-1) for m in self.modules for p in m.parameters()])


def plain(way):
    """What the plain loop comes to."""
    job = Job(way)
    number = 0
    for _ in range(EPOCHS):
        for x, y in plain_batches(job.x, job.y, BATCH):
            number += 1
            for optimizer in job.optimizers:
                optimizer.zero_grad()
            job.step(x, y, number)
    return job.outcome()


def main(folder):
    import espalier
    import espalier.torch as adl
    trial = espalier.trial()
    way, most = trial.get("way", "adversaries"), trial.get("most", 0)
    job = Job(way)
    job.wrap(adl)
    loader = adl.AdaptiveDataLoader(TensorDataset(job.x, job.y), batch_size=BATCH,
                                    local_bsz_bounds=(None, most) if most else None)
    first = job.models[0]
    for epoch in adl.epochs(EPOCHS):
        for x, y in loader:
            job.step(x, y, first.steps + 1)
        trial.report(epoch, 0.0, replicas=first.replicas)
    torch.save(job.outcome(), pathlib.Path(folder) / f"{way}-{most}-{first.rank}")


if __name__ == "__main__":
    main(sys.argv[1])
