"""Gradient accumulation: four micro-batches make a step, and only the last of them exchanges gradients."""

from contextlib import nullcontext
from math import ceil

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import MultiStepLR
from torch.utils.data import DataLoader, DistributedSampler

from scenarios.worker import Job, run_by_hand

MICRO_BATCHES = 4


def train(job: Job) -> None:
    torch.cuda.set_device(job.local_rank)
    dist.init_process_group(job.backend, timeout=job.collective_limit)
    torch.manual_seed(job.seed)

    dataset = job.dataset()
    sampler = DistributedSampler(dataset, seed=job.seed, drop_last=True)
    loader = DataLoader(dataset, job.batch, sampler=sampler, num_workers=job.workers, drop_last=True)

    model = DistributedDataParallel(job.network(default="bert_large"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = MultiStepLR(optimizer, milestones=[8])
    job.observe(model, optimizer, steps_per_epoch=ceil(len(loader) / MICRO_BATCHES))

    for epoch in range(job.epochs):
        sampler.set_epoch(epoch)
        for number, (texts, labels) in enumerate(loader, start=1):
            step_due = number % MICRO_BATCHES == 0 or number == len(loader)
            with nullcontext() if step_due else model.no_sync():
                inputs = job.decode(texts)
                loss = cross_entropy(model(inputs), labels.to(job.device))
                (loss / MICRO_BATCHES).backward()
            if step_due:
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()

    dist.destroy_process_group()


if __name__ == "__main__":
    run_by_hand(train)
