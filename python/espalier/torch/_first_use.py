"""What a process does for the first time, beyond its imports: PyTorch and the memory beneath take longer for it than ever
again. A replica that waits to be asked for does it while it waits, and some the process does that it is forked from."""
import io
import linecache
import os
import sys

import torch

from espalier import _library
from espalier.torch import _checkpoint, _rehearsal  # noqa: F401  which programs import when they begin to train

# Builds that look for devices when they first differentiate, where there may be any. Which of them are the replica's own it
# does not know yet.
_DEVICES = ("/dev/nvidiactl", "/dev/nvmap", "/dev/kfd", "/dev/dri", "/dev/dxg")
_LOOKS_FOR_DEVICES = (any(getattr(torch.version, name, None) for name in ("cuda", "hip", "xpu")) and
                      any(os.path.exists(device) for device in _DEVICES))
# torch.manual_seed notes where it was called from, once for each kind of device, with the lines of the source: these files
# are read whole for it.
_SEEDING = ("torch.random", "torch.cuda", "torch.cuda.random", "torch.mps", "torch.mtia", "torch.xpu", "torch.xpu.random",
            "torch._compile", "torch._dynamo.eval_frame")
for _module in _SEEDING:
    if getattr(sys.modules.get(_module), "__file__", None):
        linecache.getlines(sys.modules[_module].__file__)


def rehearse():
    """Trains a net that nobody sees, saves and loads it, and yields between its steps, so that it can be left. Random
    numbers are drawn afterwards as if it had not."""
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        yield
        data = torch.utils.data.TensorDataset(torch.randn(8, 8), torch.randint(4, (8,)))
        for inputs, labels in torch.utils.data.DataLoader(data, batch_size=4):
            loss = torch.nn.functional.cross_entropy(net(inputs), labels)
            yield
            if _LOOKS_FOR_DEVICES:
                continue
            optimizer.zero_grad()
            loss.backward()
            yield
            optimizer.step()
            yield
        saved = io.BytesIO()
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, saved)
        yield
        saved.seek(0)
        torch.load(saved, weights_only=True)
        yield
    _library.Library()
    for operator in ("describe_model", "give", "incoming"):
        getattr(torch.ops.espalier, operator)
