"""tests/trial_runner/torch/elastic_probe.cc as a program in Python: the same parameters, the same record, so that
the same tests hold it to the same promises. It does without data=torch, mixed_precision and
bucket_operations, which are of C++ programs."""
import os
import pathlib
import sys
from time import sleep as pause

import torch
from torch.utils.data import Dataset, IterableDataset

import espalier
import espalier.torch as adl

FEATURES = 8


class Record:
    def __init__(self, folder):
        self._out = open(pathlib.Path(folder) / str(os.getpid()), "w", encoding="utf-8") if folder else None

    def add(self, generation, epoch, step, samples):
        """Which samples were dealt in the step about to be taken."""
        if self._out:
            print(generation, epoch, step, *samples, file=self._out, flush=True)


class Samples(Dataset):
    def __init__(self, x, y, noise):
        self._x, self._y, self._noise = x, y, noise

    def __len__(self):
        return len(self._x)

    def __getitem__(self, index):
        x = self._x[index]
        if self._noise > 0:
            x = x + self._noise * torch.randn(FEATURES)
        return index, x, self._y[index]


class SampleStreams(IterableDataset):
    """Each epoch's stream starts at another sample. It divides itself over workers where it is shown any."""

    def __init__(self, samples, says):
        self._samples, self._says = samples, says
        self._epoch = 0

    def __len__(self):
        if self._says == 0:
            raise TypeError("it does not say")
        return self._says

    def set_epoch(self, epoch):
        self._epoch = epoch

    def __iter__(self):
        size = len(self._samples)
        worker = torch.utils.data.get_worker_info()
        for n in range(worker.id, size, worker.num_workers) if worker else range(size):
            yield self._samples[(n + 17 * self._epoch) % size]


class LastEpoch(espalier.State):
    """What the program itself remembers of the epoch before."""

    def __init__(self):
        super().__init__("last-epoch")
        self.epoch = 0

    def save(self, fileobj):
        fileobj.write(str(self.epoch).encode())

    def load(self, fileobj):
        self.epoch = int(fileobj.read())


def make_net(trial):
    width = trial.get("width", 16)
    if trial.get("own_seed", False):
        torch.manual_seed(os.getpid())
    parts = [torch.nn.Linear(FEATURES, width)]
    if trial.get("batch_norm", False):
        parts.append(torch.nn.BatchNorm1d(width))
    if (dropout := trial.get("dropout", 0.0)) > 0:
        parts.append(torch.nn.Dropout(dropout))
    return torch.nn.Sequential(*parts, torch.nn.Linear(width, 1))


def stay_while_held(log):
    hold = pathlib.Path(log) / "hold"
    if not log or not hold.exists():
        return
    try:
        (hold / str(os.getpid())).write_text("here")
    except OSError:  # it went in between
        return
    while hold.exists():
        pause(0.001)


def main():
    trial = espalier.trial()
    samples, given_epochs = trial.get("samples", 1000), trial.get("epochs", 2)
    epochs = given_epochs if given_epochs > 0 else 2**62
    compute_ms, log = trial.get("compute_ms", 0), trial.get("log", "")
    record = Record(log)
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(samples, FEATURES, generator=generator)
    y = x.pow(2).sum(1, keepdim=True) + 0.3 * torch.randn(samples, 1, generator=generator)

    net, second_net = make_net(trial), make_net(trial)
    lr = trial.get("lr", 0.01)
    if trial.get("adam", False):
        optimizer = torch.optim.Adam(net.parameters(), lr)
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr, momentum=trial.get("momentum", 0.9))
    options = {"scaling_rule": trial.get("scaling_rule", "") or None,
               "base_batch_size": trial.get("base_batch_size", 0),
               "max_gradient_norm": trial.get("max_gradient_norm", 0.0),
               "max_skipped_steps": trial.get("max_skipped_steps", 10)}
    leaves_out, drawn = trial.get("leaves_out", 0), trial.get("drawn", False)
    nan_from = trial.get("nan_from", 0)
    nan_to = nan_from + trial.get("nan_steps", 1)
    schedule_of = trial.get("schedule", "")
    rates = {"epoch": 0.7, "batch": 0.99}
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, rates[schedule_of]) if schedule_of else None
    parallel = adl.AdaptiveDataParallel(net, optimizer, schedule, **options)
    second = None
    if trial.get("models", 1) == 2:
        second_optimizer = torch.optim.Adam(second_net.parameters(), lr)
        second = adl.AdaptiveDataParallel(second_net, second_optimizer, name="second", **options)
    last_epoch = seen = None
    if trial.get("sums", False):
        last_epoch, seen = LastEpoch(), adl.Accumulator()
    max_atomic = trial.get("max_atomic", 0)
    trial.get("prefetch", 2)
    evaluate_first = trial.get("evaluate_first", False)
    dataset, streams = Samples(x, y, trial.get("noise", 0.0)), trial.get("data", "indices") == "stream"
    if streams:
        dataset = SampleStreams(dataset, trial.get("says", 0))
    loader = adl.AdaptiveDataLoader(
        dataset, batch_size=trial.get("batch_size", 32), shuffle=not streams, training=True,
        num_workers=trial.get("workers", 0), local_bsz_bounds=(None, max_atomic or None),
        gradient_accumulation=trial.get("accumulation", True))
    if (most := trial.get("max_batch_size", 0)) > 0:
        loader.autoscale_batch_size(most, (trial.get("min_atomic", 0) or None, max_atomic or None),
                                    gradient_accumulation=True)

    def error_of(indices):
        stay_while_held(log)
        return {"error": (net(x[indices]) - y[indices]).pow(2).sum().item()}

    def evaluate():
        return adl.evaluate(error_of, samples, 256)["error"]

    batch_size, batches = trial.get("batch_size", 32), trial.get("batches", "")
    for epoch in adl.epochs(epochs):
        if batches == "start":
            loader.set_batch_size(batch_size * (1 + (epoch - 1) % 3))
        before = evaluate() if evaluate_first else 0.0
        net.train()
        for indices, inputs, targets in loader:
            step = parallel.steps + 1
            record.add(espalier._runtime.runtime().position.generation, epoch, step, indices.tolist())
            if leaves_out and parallel.rank + 1 == parallel.replicas and step % leaves_out == 0:
                continue
            if seen is not None:
                seen["samples"] += len(indices)
                seen["indices"] += indices.sum().item()
            if compute_ms > 0:
                pause(compute_ms / 1000)
            factor = float("nan") if nan_from > 0 and nan_from <= step < nan_to else 1.0
            (torch.nn.functional.mse_loss(parallel(inputs), targets) * factor).backward()
            optimizer.step()
            if schedule_of == "batch":
                schedule.step()
            if second is not None:
                output = net(inputs) + second(inputs)  # through the first one, which this is not to disturb
                (torch.nn.functional.mse_loss(output, targets) * factor).backward()
                second_optimizer.step()
            if drawn:
                with torch.no_grad():
                    for p in net.parameters():
                        p.add_(0.01 * torch.randn_like(p))
        if schedule_of == "epoch":
            schedule.step()
        error = 0.0
        for _ in range(trial.get("evaluations", 1)):
            error = evaluate()
        figures = {"steps": parallel.steps, "skipped": parallel.skipped_steps, "batch_size": parallel.batch_size}
        if evaluate_first:
            figures["before"] = before / samples
        if seen is not None:
            with seen.synchronized():
                figures.update(seen)
                seen.clear()
            figures["last_epoch"] = last_epoch.epoch
            last_epoch.epoch = epoch
        trial.report(epoch, error / samples, **figures)
        if batches == "end":
            loader.set_batch_size(batch_size * (1 + epoch % 3))
        # All have to come to the same answer: so it goes through a sum.
        if given_epochs == 0:
            stop = adl.evaluate(lambda _: {"stop": float((pathlib.Path(log) / "stop").exists())}, 1, 1)
            if stop["stop"] > 0:
                break
    all_parameters = trial.get("all_parameters", False)
    if log and (parallel.rank == 0 or all_parameters):
        trained = list(net.parameters()) + (list(second_net.parameters()) if second is not None else [])
        name = f"parameters-{parallel.rank}" if all_parameters else "parameters"
        with open(pathlib.Path(log) / name, "w", encoding="utf-8") as out:
            for p in trained:
                print(*(f"{v:.9g}" for v in p.detach().reshape(-1).tolist()), sep="\n", file=out)


if __name__ == "__main__":
    sys.exit(main())
