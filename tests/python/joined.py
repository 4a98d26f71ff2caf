"""A program that replicas join: what its model remembers in other ways than by a tensor that stays the same one, and what stands
behind its loop over batches. It fails where a replica has seen no batch in an epoch, or remembers one thing and not another."""
import torch
import torch.nn.functional as F
from torch.utils.data import TensorDataset

import espalier
import espalier.torch as adl


class Remembering(torch.nn.Module):
    """Counts its forward passes while it trains."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.register_buffer("assigned", torch.zeros(1))
        self.register_buffer("grown", torch.zeros(0), persistent=False)
        self.register_buffer("none_at_first", None)
        self.in_extra_state = 0

    def get_extra_state(self):
        return {"count": torch.tensor(self.in_extra_state)}

    def set_extra_state(self, state):
        self.in_extra_state = int(state["count"])

    def forward(self, x):
        if self.training:
            self.in_extra_state += 1
            count = self.assigned.item() + 1
            self.assigned = self.assigned + 1
            self.grown = torch.full((3,), count)
            self.none_at_first = torch.full((40_000,), count)
            if not hasattr(self, "late"):
                self.register_buffer("late", torch.zeros(1, dtype=torch.int64))
            self.late = self.late + 1
        return self.layer(x)

    def counts(self):
        buffers = [self.assigned[0], self.grown[1], self.none_at_first[-1], self.late[0] + 0 * len(self.grown)]
        return [int(b) for b in buffers] + [self.in_extra_state]


def main():
    trial = espalier.trial()
    torch.set_num_threads(1)
    torch.manual_seed(3)
    net = Remembering()
    rehearsed = []
    hook = net.register_forward_pre_hook(lambda *_: rehearsed.append(1))
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    model = adl.AdaptiveDataParallel(net, optimizer)
    x = torch.randn(10, 2)
    loader = adl.AdaptiveDataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
    for epoch in adl.epochs(100_000):
        hook.remove()
        batches = 0
        for a, b in loader:
            F.mse_loss(model(a), b).backward()
            optimizer.step()
            batches += 1
        if batches == 0:
            raise RuntimeError(f"no batch in epoch {epoch} on replica {model.rank} of {model.replicas}")
        fleeting = "grown" in net._non_persistent_buffers_set
        counts = net.counts()
        if max(counts) != min(counts) or not fleeting:
            raise RuntimeError(f"replica {model.rank} of {model.replicas} remembers {counts}, fleeting: {fleeting}")
        # Most of the time is spent here, where replicas are about to join.
        adl.evaluate(lambda indices: {"trace": torch.linalg.inv(torch.eye(100)).trace().item()}, 10, 1)
        # A step that is dropped with a replica is done again, with its forward pass.
        trial.report(epoch, counts[0] - model.steps, replicas=model.replicas, rehearsed=len(rehearsed))


if __name__ == "__main__":
    main()
