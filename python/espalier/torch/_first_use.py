"""What a process does for the first time, beyond its imports: PyTorch and the memory beneath take longer for it than ever
again. A replica that waits to be asked for does it while it waits."""
import io

import torch

# Builds that look for devices when they first differentiate. Which of them are the replica's own it does not know yet.
_LOOKS_FOR_DEVICES = any(getattr(torch.version, name, None) for name in ("cuda", "hip", "xpu"))


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
