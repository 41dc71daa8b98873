"""DataParallel: one process drives all GPUs, copies the network from GPU 0 to the others in every step, and sums gradients there."""

import torch
from torch.nn import DataParallel
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import MultiStepLR
from torch.utils.data import DataLoader

from scenarios.worker import Job, run_by_hand


def train(job: Job) -> None:
    torch.manual_seed(job.seed)

    dataset = job.dataset()
    loader = DataLoader(dataset, job.batch * job.gpus, shuffle=True, num_workers=job.workers, drop_last=True)

    model = DataParallel(job.network(default="bert_large", decodes=True))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = MultiStepLR(optimizer, milestones=[8])
    job.observe(model, optimizer, steps_per_epoch=len(loader))

    for _ in range(job.epochs):
        for files, labels in loader:
            outputs = model(job.upload(files))
            loss = cross_entropy(outputs, labels.to(job.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()


if __name__ == "__main__":
    run_by_hand(train)
