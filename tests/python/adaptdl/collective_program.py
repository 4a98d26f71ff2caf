"""Values of any kind over the trial's group, once there is one, and states of the program's own.
usage: collective_program.py [EPOCHS [FILE]]; with a file, it ends before that once the file is there"""
import pathlib
import sys
from time import sleep as pause

import torch
import torch.nn.functional as F

import adaptdl
import adaptdl.torch as adl
import espalier  # for reports, which AdaptDL has not

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "examples/python_adaptdl"))
from digits import digits_data  # noqa: E402


def collective(epochs=3, end=None):
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
        if end:
            pause(0.5)  # others need the processors
            # All have to come to the same answer.
            if adaptdl.collective.allreduce(pathlib.Path(end).exists(), lambda a, b: a or b):
                break
    adaptdl.collective.teardown()
    print("most replicas", most, flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    collective(*map(int, sys.argv[1:2]), *sys.argv[2:])
