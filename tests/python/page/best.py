"""What docs/python_training.md shows of files, evaluations and writers."""
import torch, torch.nn.functional as F
import espalier, espalier.torch as adl
from task import Net, training, validation


class Writer:
    """In the place of TensorBoard's."""

    def add_scalar(self, tag, value, step):
        print(tag, value, step)

    def close(self):
        print("closed")


class Best(espalier.State):                                  # in checkpoints, and given to who joins
    accuracy = 0.0

    def save(self, fileobj):
        fileobj.write(str(self.accuracy).encode())

    def load(self, fileobj):
        self.accuracy = float(fileobj.read())


trial = espalier.trial()
net = Net(16)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
model = adl.AdaptiveDataParallel(net, optimizer)
loader = adl.AdaptiveDataLoader(training, batch_size=64, shuffle=True)
best, writer = Best("best"), Writer()
trial.on_leave(writer.close)
for epoch in adl.epochs(4):
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    def right(indices):
        x, y = validation[indices]
        return {"correct": (model(x).argmax(1) == y).sum().item()}
    accuracy = adl.evaluate(right, validation, batch_size=500)["correct"] / len(validation)
    if accuracy > best.accuracy:
        best.accuracy = accuracy
        if model.rank == 0:
            torch.save(model.module.state_dict(), trial.directory / "best.pt")
    if model.rank == 0:
        writer.add_scalar("accuracy", accuracy, model.steps)
    trial.report(epoch, accuracy)
