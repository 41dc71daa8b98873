"""Validation on GPU 0 alone: every few steps rank 0 validates, and the others wait for it in the next all-reduce."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import MultiStepLR
from torch.utils.data import DataLoader, DistributedSampler

from scenarios.worker import Job, run_by_hand


def validate(job: Job, network: nn.Module, loader: DataLoader) -> float:
    """How many of the held-out samples the network gets right."""
    network.eval()
    right = torch.zeros((), device=job.device)
    with torch.no_grad():
        for files, labels in loader:
            images = job.decode(files)
            right += (network(images).argmax(1) == labels.to(job.device)).sum()
    network.train()
    return right.item()


def train(job: Job) -> None:
    torch.cuda.set_device(job.local_rank)
    dist.init_process_group(job.backend, timeout=job.collective_limit)
    torch.manual_seed(job.seed)

    dataset = job.dataset()
    sampler = DistributedSampler(dataset, seed=job.seed, drop_last=True)
    loader = DataLoader(dataset, job.batch, sampler=sampler, num_workers=job.workers, drop_last=True)
    held_out = DataLoader(job.held_out(), job.batch, num_workers=job.workers)

    model = DistributedDataParallel(job.network(default="resnet50"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = MultiStepLR(optimizer, milestones=[8])
    job.observe(model, optimizer, steps_per_epoch=len(loader))

    for epoch in range(job.epochs):
        sampler.set_epoch(epoch)
        for step, (files, labels) in enumerate(loader, start=1):
            images = job.decode(files)
            loss = cross_entropy(model(images), labels.to(job.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            if step % job.pause_every == 0 and dist.get_rank() == 0:
                validate(job, model.module, held_out)

    dist.destroy_process_group()


if __name__ == "__main__":
    run_by_hand(train)
