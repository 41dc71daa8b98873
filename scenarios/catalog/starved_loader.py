"""Starved by the loader: no workers, so that reading and decoding a batch takes turns with training on it."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import MultiStepLR
from torch.utils.data import DataLoader, DistributedSampler

from scenarios.worker import Job, run_by_hand


def train(job: Job) -> None:
    torch.cuda.set_device(job.local_rank)
    dist.init_process_group(job.backend, timeout=job.collective_limit)
    torch.manual_seed(job.seed)

    dataset = job.dataset()
    sampler = DistributedSampler(dataset, seed=job.seed, drop_last=True)
    loader = DataLoader(dataset, job.batch, sampler=sampler, num_workers=0, drop_last=True)

    model = DistributedDataParallel(job.network(default="resnet50"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = MultiStepLR(optimizer, milestones=[8])
    job.observe(model, optimizer, steps_per_epoch=len(loader))

    for epoch in range(job.epochs):
        sampler.set_epoch(epoch)
        for files, labels in loader:
            images = job.decode(files)
            loss = cross_entropy(model(images), labels.to(job.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()

    dist.destroy_process_group()


if __name__ == "__main__":
    run_by_hand(train)
