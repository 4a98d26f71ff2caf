"""A program whose model normalises over the samples of all replicas, and the same with one replica's BatchNorm in a
plain loop. Parameters: "way"; "grow": it trains TRAINED epochs alone and as many with another replica."""
import pathlib
import sys

import torch
from torch.utils.data import TensorDataset

from small_program import data, plain_batches

WAYS = ("linear", "images", "plain_numbers", "cut")
TRAINED = 3
SAMPLES, BATCH = 37, 9  # shares that differ, and a last step of one sample, which images have several values in


def samples_of(way):
    return SAMPLES if way == "images" else SAMPLES - 1


class Images(torch.nn.Module):
    def forward(self, x):
        return x.reshape(-1, 1, 2, 3)


def norms(way, channels):
    if way == "plain_numbers":
        return torch.nn.BatchNorm1d(channels, affine=False, momentum=None)
    return torch.nn.BatchNorm2d(channels) if way == "images" else torch.nn.BatchNorm1d(channels, momentum=0.3)


def make(way):
    torch.manual_seed(5)
    if way == "images":
        return torch.nn.Sequential(Images(), torch.nn.Conv2d(1, 4, 2), norms(way, 4), torch.nn.Flatten(),
                                   torch.nn.ReLU(), torch.nn.Linear(8, 1))
    return torch.nn.Sequential(torch.nn.Linear(6, 8), norms(way, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8),
                               norms(way, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))


def restart(model):
    """Running statistics tell of the epochs since."""
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.reset_running_stats()


def outcome(model):
    return {"parameters": torch.cat([p.detach().reshape(-1) for p in model.parameters()]),
            "buffers": torch.cat([b.detach().reshape(-1).double() for b in model.buffers()])}


def parts(way, x, y):
    """What the model sees at once, with its weight in the batch."""
    if way != "cut":
        return [(x, y, 1.0)]
    # Shares of five and four, each cut in two: the first halves go together, and so do the second ones.
    halves = [0, 1, 2, 5, 6], [3, 4, 7, 8]
    return [(x[half], y[half], len(half) / len(x)) for half in halves]


def plain(way, epochs):
    model = make(way)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    x, y = data(samples_of(way))
    for _ in range(epochs):
        restart(model)
        for inputs, targets in plain_batches(x, y, BATCH):
            optimizer.zero_grad()
            for x_part, y_part, weight in parts(way, inputs, targets):
                (weight * torch.nn.functional.mse_loss(model(x_part), y_part)).backward()
            optimizer.step()
    return outcome(model)


def main(folder):
    import espalier
    import espalier.torch as adl

    class Course(espalier.State):
        """How many epochs have been trained, alone and together; and whether the one under way trains."""

        def __init__(self):
            super().__init__("course")
            self.now = {"epoch": 1, "trains": True, "trained": 0}

        def save(self, fileobj):
            torch.save(self.now, fileobj)

        def load(self, fileobj):
            self.now = torch.load(fileobj)

    trial = espalier.trial()
    way, grow = trial.get("way", "linear"), trial.get("grow", False)
    model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(make(way))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    parallel = adl.AdaptiveDataParallel(model, optimizer)
    loader = adl.AdaptiveDataLoader(TensorDataset(*data(samples_of(way))), batch_size=BATCH,
                                    local_bsz_bounds=(None, 3 if way == "cut" else None))
    course = Course()
    for epoch in adl.epochs(2**40 if grow else TRAINED):
        now = course.now
        if now["trains"]:
            restart(model)
        optimizer.param_groups[0]["lr"] = 0.05 if now["trains"] else 0.0
        for inputs, targets in loader:
            torch.nn.functional.mse_loss(parallel(inputs), targets).backward()
            optimizer.step()
        together = adl.evaluate(lambda _: {"replicas": parallel.replicas}, 1, 1)["replicas"] == 2
        # Set, and not counted on: a replica that joins here comes by once more.
        if now["epoch"] == epoch:
            trained = now["trained"] + now["trains"]
            if now["trains"]:
                trial.report(trained, float(together))
            course.now = {"epoch": epoch + 1, "trained": trained,
                          "trains": trained < TRAINED or together and trained < 2 * TRAINED}
        if course.now["trained"] == 2 * TRAINED:
            break
    torch.save(outcome(model), pathlib.Path(folder) / f"{way}-{parallel.rank}")


if __name__ == "__main__":
    main(sys.argv[1])
