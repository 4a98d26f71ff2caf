"""A program whose epochs end in a step of fewer samples than replicas, and the same as a plain loop. How it takes
its steps is its parameter "way"."""
import contextlib
import pathlib
import sys

import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.data import TensorDataset

from small_program import data, net, plain_batches

EPOCHS = 3
BATCH = 6
WAYS = ("plain", "two", "clip", "schedule", "scaler", "models", "evaluation", "stop", "stop_evaluation",
        "tiny", "held", "compiled", "own", "checkpointing", "thawed")
NOT_FINITE = (6, 9, 12)  # steps of "scaler" that are not taken; the first and the last are short ones
STOP_AFTER = 2           # steps of an epoch of "stop"


def samples_of(way):
    return 9 if batch_of(way) == 2 else 32 if way == "two" else 31


def batch_of(way):
    return 2 if way.startswith("stop") or way == "tiny" else BATCH


class Summed(torch.optim.Optimizer):
    """An optimizer of a program's own, with state of several kinds."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                state["count"] = state.get("count", 0) + 1
                state["sum"] = state["sum"] + p.grad.pow(2) if "sum" in state else p.grad.pow(2) + 1
                p.addcdiv_(p.grad, state["sum"].sqrt(), value=-group["lr"] / state["count"] ** 0.25)


class Checkpointed(torch.nn.Module):
    """Computes its layers' activations again in backward: the middle one's as older programs do, the last one's anew."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        x = self.layers[0](x)
        x = checkpoint(self.layers[1], x, use_reentrant=True)
        return checkpoint(self.layers[2], x, use_reentrant=False)


class Job:
    """Models, optimizers, and what a batch does with them."""

    def __init__(self, way):
        self.way = way
        self.x, self.y = data(samples_of(way))
        self.models = [net(), net(seed=9, features=1)] if way == "models" else [net()]
        if way == "checkpointing":
            self.models = [Checkpointed(self.models[0])]
        parameters = self.models[0].parameters()
        self.optimizers = [Summed(parameters, 0.02) if way == "own" else
                           torch.optim.SGD(parameters, 0.005 if way == "thawed" else 0.02, momentum=0.9)]
        if way == "models":
            self.optimizers.append(torch.optim.Adam(self.models[1].parameters(), 0.01))
        self.layers = self.models[0]
        if way == "compiled":
            self.models = [torch.compile(self.layers, backend="aot_eager")]
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizers[0], 0.9)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=3)

    def losses(self, x, y):
        first = self.models[0](x)
        if self.way == "models":
            second = self.models[1]
            return [torch.nn.functional.mse_loss(second(first.detach()), y), second(self.models[0](x)).pow(2).mean()]
        if self.way in ("two", "held"):
            return [torch.nn.functional.mse_loss(first, y), 0.5 * self.models[0](x).abs().mean()]
        return [torch.nn.functional.mse_loss(first, y)]

    def step(self, x, y, number):
        """`number`: of the step, from 1."""
        if self.way == "scaler":
            loss = self.losses(x, y)[0] * (float("inf") if number in NOT_FINITE else 1.0)
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizers[0])
            self.scaler.step(self.optimizers[0])
            self.scaler.update()
            return
        if self.way == "thawed":
            self.layers[0].requires_grad_(number > 6)
        for i, loss in enumerate(self.losses(x, y)):
            held = self.way == "held" and i == 0 and hasattr(self.models[0], "no_sync")
            with self.models[0].no_sync() if held else contextlib.nullcontext():
                loss.backward()
        if self.way == "clip":
            torch.nn.utils.clip_grad_norm_(self.models[0].parameters(), 0.5)
        for optimizer in self.optimizers:
            optimizer.step()
        if self.way in ("schedule", "tiny"):
            self.schedule.step()

    def stops(self, step_of_epoch):
        return self.way.startswith("stop") and step_of_epoch == STOP_AFTER

    def outcome(self):
        return {"parameters": torch.cat([p.detach().reshape(-1) for m in self.models for p in m.parameters()]),
                "rate": self.optimizers[0].param_groups[0]["lr"], "scale": self.scaler.get_scale()}


def plain(way):
    """What the plain loop comes to."""
    job = Job(way)
    number = 0
    for _ in range(EPOCHS):
        for i, (x, y) in enumerate(plain_batches(job.x, job.y, batch_of(way))):
            number += 1
            for optimizer in job.optimizers:
                optimizer.zero_grad()
            job.step(x, y, number)
            if job.stops(i + 1):
                break
    return job.outcome()


def main(folder):
    import espalier
    import espalier.torch as adl
    trial = espalier.trial()
    job = Job(trial.get("way", "plain"))
    own = list(job.models)
    for i, (model, optimizer) in enumerate(zip(own, job.optimizers)):
        state = {} if i else {"lr_scheduler": job.schedule, "mp_scaler": job.scaler}
        job.models[i] = adl.AdaptiveDataParallel(model, optimizer, name=f"model-{i}", **state)
    first = job.models[0]
    loader = adl.AdaptiveDataLoader(TensorDataset(job.x, job.y), batch_size=batch_of(job.way))
    seen = adl.Accumulator()
    for epoch in adl.epochs(EPOCHS):
        begun = first.steps
        for x, y in loader:
            seen["samples"] += len(x)
            job.step(x, y, first.steps + 1)
            if job.way.endswith("evaluation"):  # by those who are there
                assert adl.evaluate(lambda indices: {"sum": int(indices.sum())}, 40, 3) == {"sum": 780}
            if job.stops(first.steps - begun):
                break
        with seen.synchronized():
            samples = seen["samples"]
            seen.clear()
        trial.report(epoch, samples, replicas=first.replicas)
    job.models = own
    torch.save(job.outcome(), pathlib.Path(folder) / f"{job.way}-{first.rank}")


if __name__ == "__main__":
    main(sys.argv[1])
