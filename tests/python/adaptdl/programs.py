"""Loops as programs for AdaptDL write them, on data made on the spot.
usage: programs.py linear|digits|residual|collective [EPOCHS]"""
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.utils.data import Dataset, TensorDataset

import adaptdl
import adaptdl.torch as adl
import espalier  # for reports, which AdaptDL has not


def linear(epochs=20):
    """A line is fitted; the schedule is stepped after each epoch."""
    class Line(Dataset):
        def __init__(self, size):
            generator = torch.Generator().manual_seed(1)
            self.x = torch.rand(size, generator=generator) * 10 - 5
            self.y = 3 + 4 * self.x + torch.randn(size, generator=generator)

        def __len__(self):
            return len(self.x)

        def __getitem__(self, index):
            return self.x[index], self.y[index]

    adl.init_process_group("gloo")
    loader = adl.AdaptiveDataLoader(Line(1000), batch_size=32, shuffle=False, num_workers=1)
    model = torch.nn.Linear(1, 1, bias=True)
    sgd = torch.optim.SGD([{"params": [p]} for p in (model.bias, model.weight)], lr=0.01)
    schedule = torch.optim.lr_scheduler.MultiStepLR(sgd, [10])
    parallel = adl.AdaptiveDataParallel(model, sgd, schedule)
    for epoch in adl.remaining_epochs_until(epochs):
        for inputs, targets in loader:
            sgd.zero_grad()
            F.mse_loss(parallel(inputs.reshape(-1, 1)), targets.reshape(-1, 1)).backward()
            sgd.step()
        schedule.step()
    print("bias", model.bias.item(), "weight", model.weight.item())
    assert abs(model.bias.item() - 3) < 0.2 and abs(model.weight.item() - 4) < 0.2


def digits_data(size, seed):
    """Images with one bright row, by whose place they are told apart."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (size,), generator=generator)
    images = torch.randn(size, 1, 10, 10, generator=generator) * 0.5
    images[torch.arange(size), 0, labels] += 1.5
    return TensorDataset(images, labels)


def digits(epochs=3):
    """A training and a validation loop with sums; Adadelta and a step schedule; the batch may grow."""
    adl.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    train_loader = adl.AdaptiveDataLoader(digits_data(2000, 1), drop_last=True, batch_size=64, shuffle=True)
    valid_loader = adl.AdaptiveDataLoader(digits_data(500, 2), batch_size=100)
    train_loader.autoscale_batch_size(1028, local_bsz_bounds=(32, 128))
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Flatten(),
                                torch.nn.Linear(512, 10))
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    model = adl.AdaptiveDataParallel(model, optimizer, scheduler)
    for epoch in adl.remaining_epochs_until(epochs):
        model.train()
        for image, label in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(image), label)
            loss.backward()
            optimizer.step()
        model.eval()
        stats = adl.Accumulator()
        with torch.no_grad():
            for image, label in valid_loader:
                output = model(image)
                stats["loss"] += F.cross_entropy(output, label, reduction="sum").item()
                stats["correct"] += output.argmax(dim=1).eq(label).sum().item()
                stats["total"] += label.size(0)
        with stats.synchronized():
            stats["accuracy"] = stats["correct"] / stats["total"]
            print(f"epoch {adl.current_epoch()} loss {stats['loss'] / stats['total']:.4f} "
                  f"accuracy {stats['accuracy']:.3f}", flush=True)
            assert stats["total"] == 500
            last = stats["accuracy"]
        scheduler.step()
    assert adl.finished_epochs() == epochs
    assert last > 0.9, last


class Scalars:
    """What of a SummaryWriter is used."""

    def __init__(self):
        self.tags = set()

    def add_scalar(self, tag, value, step):
        self.tags.add(tag)


def residual(epochs=3):
    """The rank decides who would download; a parameter group for each parameter; loss scaling; tensorboard."""
    adl.init_process_group("gloo")
    if adaptdl.env.replica_rank() == 0:
        dataset = digits_data(1000, 1)
        dist.barrier()
    else:
        dist.barrier()
        dataset = digits_data(1000, 1)
    loader = adl.AdaptiveDataLoader(dataset, batch_size=100, shuffle=True, num_workers=2, drop_last=True)
    loader.autoscale_batch_size(400, local_bsz_bounds=(8, 100), gradient_accumulation=True)
    valid_loader = adl.AdaptiveDataLoader(digits_data(300, 2), batch_size=100, shuffle=False, num_workers=2)

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.BatchNorm2d(8)

        def forward(self, x):
            return x + F.relu(self.norm(self.conv(x)))

    net = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), Block(), Block(), torch.nn.Flatten(), torch.nn.Linear(512, 10))
    scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
    optimizer = torch.optim.SGD([{"params": [p]} for p in net.parameters()], lr=0.02, momentum=0.9,
                                weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2], 0.1)
    net = adl.AdaptiveDataParallel(net, optimizer, schedule, scaler)
    writer = Scalars()

    def run(loader, name, train):
        net.train(train)
        stats = adl.Accumulator()
        with torch.set_grad_enabled(train):
            for inputs, targets in loader:
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    outputs = net(inputs)
                    loss = F.cross_entropy(outputs, targets)
                if train:
                    optimizer.zero_grad()
                    scaler.scale(loss).backward()
                    scaler.step(optimizer)
                    scaler.update()
                    step = net.steps
                    loader.to_tensorboard(writer, step, tag_prefix="AdaptDL/Data/")
                    net.to_tensorboard(writer, step, tag_prefix="AdaptDL/Model/")
                stats["loss_sum"] += loss.item() * targets.size(0)
                stats["total"] += targets.size(0)
                stats["correct"] += outputs.max(1)[1].eq(targets).sum().item()
        with stats.synchronized():
            stats["accuracy"] = stats["correct"] / stats["total"]
            print(name, adl.current_epoch(), dict(stats), flush=True)
            return stats["accuracy"]

    for epoch in adl.remaining_epochs_until(epochs):
        run(loader, "train", True)
        accuracy = run(valid_loader, "valid", False)
        espalier.trial().report(epoch + 1, accuracy)
        schedule.step()
    assert accuracy > 0.9, accuracy
    if adaptdl.env.replica_rank() == 0:
        assert "AdaptDL/Data/Total_Batch_Size" in writer.tags and "AdaptDL/Model/Gain" in writer.tags, writer.tags


def collective(epochs=3):
    """Values of any kind over the trial's group, once there is one, and states of the program's own."""
    class Seen(adaptdl.checkpoint.State):
        epochs = []

        def save(self, fileobj):
            fileobj.write(",".join(map(str, self.epochs)).encode())

        def load(self, fileobj):
            self.epochs = [int(e) for e in fileobj.read().decode().split(",") if e]

    adaptdl.collective.initialize()
    assert adaptdl.collective.allreduce(1) == 1, "alone before the first epoch"
    seen = Seen("seen")
    assert not adaptdl.checkpoint.load_state(seen), "it comes in the first epoch"
    loader = adl.AdaptiveDataLoader(digits_data(2000, 1), batch_size=20, shuffle=True)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(100, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    model = adl.AdaptiveDataParallel(model, optimizer)
    most = 1
    for epoch in adl.remaining_epochs_until(epochs):
        for image, label in loader:
            F.cross_entropy(model(image), label).backward()
            optimizer.step()
        ranks = adaptdl.collective.allreduce({adaptdl.env.replica_rank()}, lambda a, b: a | b)
        later = [adaptdl.collective.allreduce_async(i) for i in (1, 2)]
        assert later[1].result() == 2 * later[0].result() == 2 * len(ranks), (later, ranks)
        assert ranks == set(range(len(ranks))), ranks
        assert adaptdl.collective.broadcast(adaptdl.env.replica_rank()) == 0
        assert seen.epochs in (list(range(epoch)), list(range(epoch + 1))), (seen.epochs, epoch)
        seen.epochs = list(range(epoch + 1))
        most = max(most, len(ranks))
        espalier.trial().report(epoch + 1, len(ranks))
        print("epoch", epoch, "ranks", sorted(ranks), flush=True)
    adaptdl.collective.teardown()
    print("most replicas", most, flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    program = {"linear": linear, "digits": digits, "residual": residual, "collective": collective}[sys.argv[1]]
    program(*map(int, sys.argv[2:]))
