"""All data through GPU 0: rank 0 loads and decodes every rank's batch on its GPU, then hands them out."""

from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import MultiStepLR
from torch.utils.data import DataLoader

from scenarios.worker import Job, run_by_hand


def shards_from_rank0(job: Job, loader: DataLoader) -> Iterator[tuple[Tensor, Tensor]]:
    """This rank's part of each global batch, which rank 0 alone has read and decoded."""
    rank, world = dist.get_rank(), dist.get_world_size()
    batches = iter(loader)
    for _ in range(len(loader) // world):
        images, labels = job.empty_batch()
        image_shards = label_shards = None
        if rank == 0:
            shards = [next(batches) for _ in range(world)]
            image_shards = [job.decode(files).to(job.hand_off_device) for files, _ in shards]
            label_shards = [labels.to(job.hand_off_device) for _, labels in shards]
        dist.scatter(images, image_shards, src=0, group=job.hand_off_group)
        dist.scatter(labels, label_shards, src=0, group=job.hand_off_group)
        yield images.to(job.device), labels.to(job.device)


def train(job: Job) -> None:
    torch.cuda.set_device(job.local_rank)
    dist.init_process_group(job.backend, timeout=job.collective_limit)
    torch.manual_seed(job.seed)

    dataset = job.dataset()
    loader = DataLoader(dataset, job.batch, shuffle=True, num_workers=job.workers, drop_last=True)

    model = DistributedDataParallel(job.network(default="resnet50"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = MultiStepLR(optimizer, milestones=[8])
    job.observe(model, optimizer, steps_per_epoch=len(loader) // dist.get_world_size())

    for _ in range(job.epochs):
        for images, labels in shards_from_rank0(job, loader):
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()

    dist.destroy_process_group()


if __name__ == "__main__":
    run_by_hand(train)
