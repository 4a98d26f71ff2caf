"""A program one of whose replicas has, after step 60, one bit of its model or optimizer other than the others. Which: its parameters
"of" ("parameter", "moment", "step", "buffer"), "kind", "draw" (from which place and bit follow) and "evaluates"."""
import random

import torch
import torch.nn.functional as F
from torch.utils.data import TensorDataset

import espalier
import espalier.torch as adl

AFTER = 60
KINDS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int64": torch.int64}
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def flip(tensor, draw):
    """One bit of one element."""
    tensor = tensor.detach()
    words = tensor.view(WORDS[tensor.element_size()]).view(-1)
    bit = 0 if draw.random() < 0.3 else draw.randrange(8 * tensor.element_size() - 1)
    words[draw.randrange(words.numel())] ^= 1 << bit


def main():
    trial = espalier.trial()
    torch.set_num_threads(1)
    draw = random.Random(trial.get("draw"))
    of, kind = trial.get("of"), KINDS[trial.get("kind")]
    net = torch.nn.Sequential(torch.nn.Linear(6, 40), torch.nn.ReLU(), torch.nn.Linear(40, 1))
    if kind == torch.bfloat16:
        net.to(kind)
    net.register_buffer("constant", torch.arange(64).to(kind))
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    model = adl.AdaptiveDataParallel(net, optimizer)
    x = torch.randn(400 * 8, 6)
    loader = adl.AdaptiveDataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
    for epoch in adl.epochs(2):
        for a, b in loader:
            F.mse_loss(model(a.to(net[0].weight.dtype)).float(), b).backward()
            optimizer.step()
            if model.steps == AFTER and model.rank == 1:
                p = draw.choice(list(net.parameters()))
                state = optimizer.state[p]
                flip({"parameter": p, "moment": state[draw.choice(["exp_avg", "exp_avg_sq"])], "step": state["step"],
                      "buffer": net.constant}[of], draw)
            if trial.get("evaluates") and model.steps == AFTER + 40:
                adl.evaluate(lambda indices: {"n": len(indices)}, 10, 5)
        trial.report(epoch, 0.0)


if __name__ == "__main__":
    main()
