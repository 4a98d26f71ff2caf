"""A plain PyTorch loop: what train.py was before."""
from task import Net, training, validation

import torch, torch.nn.functional as F
from torch.utils.data import DataLoader

device = "cuda" if torch.cuda.is_available() else "cpu"
model = Net(16).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
loader = DataLoader(training, batch_size=128, shuffle=True, num_workers=2)
held_out = DataLoader(validation, batch_size=500)

for epoch in range(1, 31):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x.to(device)), y.to(device)).backward()
        optimizer.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in held_out:
            correct += (model(x.to(device)).argmax(1).cpu() == y).sum().item()
    accuracy = correct / len(validation)
    print(epoch, accuracy)
    schedule.step()
