"""A loop for DistributedDataParallel: torchrun --nproc-per-node 2 ddp.py"""
from task import Net, training, validation

import os
import torch, torch.nn.functional as F
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
rank, device = dist.get_rank(), "cpu"
if torch.cuda.is_available():
    device = f"cuda:{os.environ['LOCAL_RANK']}"
    torch.cuda.set_device(device)
model = DistributedDataParallel(Net(16).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
sampler = DistributedSampler(training)
loader = DataLoader(training, batch_size=128 // dist.get_world_size(), sampler=sampler, num_workers=2)
held_out = DataLoader(validation, batch_size=500, sampler=DistributedSampler(validation, shuffle=False))

for epoch in range(1, 31):
    sampler.set_epoch(epoch)
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x.to(device)), y.to(device)).backward()
        optimizer.step()
    model.eval()
    correct = torch.zeros(1, device=device)
    with torch.no_grad():
        for x, y in held_out:
            correct += (model(x.to(device)).argmax(1).cpu() == y).sum().item()
    dist.all_reduce(correct)
    accuracy = correct.item() / len(validation)
    if rank == 0:
        print(epoch, accuracy)
        torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, f"epoch-{epoch}.pt")
    schedule.step()
dist.destroy_process_group()
