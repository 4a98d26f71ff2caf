"""Programs whose replicas must not part, and the same as plain loops. How a program does is its parameter "way", and "most" the
samples of one forward pass, or 0."""
import pathlib
import random
import sys

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import TensorDataset

from reversible import Reversed
from small_program import data, plain_batches

EPOCHS = 4
BATCH = 10
MARKED = (3, 27, 44)  # samples whose loss is not to be trained on

# The gradient of a parameter comes several times within one backward pass.
AGAIN = ("checkpointed", "all_checkpointed", "reversible", "in_a_hook", "shared_and_checkpointed")
# Some replicas leave out steps that others do not. The second two do so after backward, and see it in a whole batch alone.
LEFT_OUT = ("not_finite", "not_finite_with_a_schedule", "not_finite_of_several_passes")
LEFT_OUT_LATE = ("late", "late_with_a_schedule")
HOOKS = ("clamped", "masked", "scaled_twice", "hooked_later")
SAME_AS_PLAIN = AGAIN + LEFT_OUT + LEFT_OUT_LATE + HOOKS
# Something is drawn outside of forward passes and the data.
DRAWN_IN_PIECES = ("noisy_gradients", "rounded", "drawn_anew", "several_passes")
DRAWN = DRAWN_IN_PIECES + ("drawn_by_python",)
ALL = SAME_AS_PLAIN + DRAWN


class Net(torch.nn.Module):
    def __init__(self, way):
        super().__init__()
        torch.manual_seed(5)
        self.first, self.middle, self.last = torch.nn.Linear(6, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
        self.way = way

    def forward(self, x):
        if self.way == "all_checkpointed":  # the outer pass brings no gradient of a parameter
            return checkpoint(self.twice, x.detach().clone().requires_grad_(), use_reentrant=True)
        return self.twice(x)

    def twice(self, x):
        x = self.first(x).relu()
        if self.way in ("checkpointed", "shared_and_checkpointed"):
            for _ in range(2):
                x = checkpoint(lambda x: self.middle(x).relu(), x, use_reentrant=True)
            if self.way == "shared_and_checkpointed":
                x = x + self.middle(x)
        elif self.way == "all_checkpointed":
            x = checkpoint(lambda x: self.middle(x).relu(), x, use_reentrant=True)
            x = checkpoint(lambda x: self.middle(x).relu(), x, use_reentrant=True)
        elif self.way == "reversible":
            for _ in range(2):
                x = Reversed.apply(lambda x: self.middle(x).relu(), x)
        else:
            x = self.middle(x).relu()
        if self.way == "in_a_hook" and x.requires_grad:
            beside = self.middle(x.detach()).pow(2).mean()
            x.register_hook(lambda gradient: beside.backward())
        return self.last(x)


class Rounded(torch.optim.SGD):
    """Rounds parameters up or down by chance."""

    @torch.no_grad()
    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            for p in group["params"]:
                p.copy_(torch.floor(p * 256 + torch.rand_like(p)) / 256)


class Job:
    def __init__(self, way):
        self.way = way
        self.x, self.y = data(45)  # the last step of an epoch is shorter
        if way in LEFT_OUT:
            self.y[list(MARKED)] = float("nan")
        if way in LEFT_OUT_LATE:
            self.y[list(MARKED)] = 1e4
        self.net = Net(way)
        kind = Rounded if way == "rounded" else torch.optim.SGD
        self.optimizer = kind(self.net.parameters(), 0.01, momentum=0.9, weight_decay=0.1)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.98)
        self.model = self.net
        self.mask = (torch.arange(64).reshape(8, 8) % 3 != 0).float()
        if way != "hooked_later":
            self.set_hooks()

    def set_hooks(self):
        if self.way in ("clamped", "hooked_later"):
            for p in self.net.parameters():
                p.register_hook(lambda gradient: gradient.clamp(-0.1, 0.1))
        if self.way == "masked":
            self.net.middle.weight.register_hook(lambda gradient: gradient.mul_(self.mask))
            self.net.middle.weight.register_hook(lambda gradient: None)  # only looks
        if self.way == "scaled_twice":
            self.net.first.weight.register_hook(lambda gradient: gradient * 0.1)

    def begin_epoch(self, number):
        if self.way == "hooked_later" and number == 2:
            self.set_hooks()

    def step(self, x, y):
        """Says whether the step was left out."""
        loss = F.mse_loss(self.model(x), y)
        if self.way in LEFT_OUT and not loss.isfinite():
            return
        loss.backward()
        if self.way in ("scaled_twice", "not_finite_of_several_passes"):  # a second pass of the batch
            self.net(x).abs().mean().backward()
        if self.way == "several_passes":  # the second on something that is drawn
            F.mse_loss(self.model(x + 0.1 * torch.randn_like(x)), y).backward()
        if self.way in LEFT_OUT_LATE and loss > 1000:
            return
        if self.way == "noisy_gradients":
            for p in self.net.parameters():
                if p.grad is not None:  # of a batch in pieces it is the last piece's
                    p.grad.add_(0.1 * torch.randn_like(p))
        self.optimizer.step()
        if self.way.endswith("with_a_schedule"):
            self.schedule.step()
        if self.way == "drawn_by_python" and random.random() < 0.5:
            with torch.no_grad():
                self.net.last.bias.mul_(random.uniform(0.5, 1.0))

    def end_epoch(self):
        if self.way == "drawn_anew":
            self.net.last.reset_parameters()

    def values(self):
        return torch.cat([p.detach().reshape(-1) for p in self.net.parameters()] +
                         [torch.tensor([group["lr"] for group in self.optimizer.param_groups])])


def plain(way):
    job = Job(way)
    for epoch in range(1, EPOCHS + 1):
        job.begin_epoch(epoch)
        for x, y in plain_batches(job.x, job.y, BATCH):
            job.optimizer.zero_grad()
            job.step(x, y)
        job.end_epoch()
    return job.values()


def main(folder):
    import espalier
    import espalier.torch as adl
    trial = espalier.trial()
    job, most = Job(trial.get("way")), trial.get("most")
    job.model = adl.AdaptiveDataParallel(job.net, job.optimizer, job.schedule)
    loader = adl.AdaptiveDataLoader(TensorDataset(job.x, job.y), batch_size=BATCH, local_bsz_bounds=(None, most or None))
    for epoch in adl.epochs(EPOCHS):
        job.begin_epoch(epoch)
        for x, y in loader:
            job.step(x, y)
        job.end_epoch()
        trial.report(epoch, 0.0, replicas=job.model.replicas)
    torch.save(job.values(), pathlib.Path(folder) / f"{job.way}-{most}-{job.model.rank}")


if __name__ == "__main__":
    main(sys.argv[1])
