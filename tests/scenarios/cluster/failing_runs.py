"""Runs with the classic mistakes of distributed training, under the real supervisor: `failing_runs.py FOLDER` leaves a record of each."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

from scenarios import supervisor
from scenarios.config import RunConfig
from scenarios.settings import Settings
from scenarios.worker import Job, entry

ROUNDS = 4


def mismatched(job: Job) -> None:
    """The ranks reduce tensors of different sizes."""
    dist.init_process_group(job.backend, timeout=job.collective_limit)
    dist.all_reduce(torch.ones(10 if dist.get_rank() else 2000))


def detailed(job: Job) -> None:
    """The same, where PyTorch was asked to compare what the ranks call."""
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()
    mismatched(job)


def uneven(job: Job) -> None:
    """Rank 0 has fewer batches."""
    dist.init_process_group(job.backend, timeout=job.collective_limit)
    for _ in range(ROUNDS if dist.get_rank() else ROUNDS - 1):
        dist.all_reduce(torch.ones(4))


def branch(job: Job) -> None:
    """Rank 0 calls a collective that the others do not."""
    dist.init_process_group(job.backend, timeout=job.collective_limit)
    if dist.get_rank() == 0:
        dist.barrier()
    dist.all_reduce(torch.ones(4))


def death(job: Job) -> None:
    """Rank 1 leaves without a word."""
    dist.init_process_group(job.backend, timeout=job.collective_limit)
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 1:
        os._exit(9)
    dist.all_reduce(torch.ones(4))


def crash(job: Job) -> None:
    """Rank 1 crashes in native code."""
    dist.init_process_group(job.backend, timeout=job.collective_limit)
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    dist.all_reduce(torch.ones(4))


def bug(job: Job) -> None:
    """Rank 1 meets an ordinary exception."""
    dist.init_process_group(job.backend, timeout=job.collective_limit)
    if dist.get_rank() == 1:
        raise KeyError("lr")
    dist.all_reduce(torch.ones(4))


MISTAKES: dict[str, Callable[[Job], None]] = {train.__name__: train for train in (mismatched, detailed, uneven, branch, death, crash, bug)}


def main(folder: Path) -> None:
    config = RunConfig.parse({"scenario": "sharded", "gpus": 2, "steps": 4})
    settings = Settings(data_dir=folder, collective_limit_s=2.0)
    for name, train in MISTAKES.items():
        pid = os.fork()  # the supervisor's store has threads: each run starts from a process without
        if pid == 0:
            entry.train_function = lambda scenario, train=train: train
            status = 1
            try:
                status = supervisor.supervise(config, folder / name, pace="fast", settings=settings)
            finally:
                os._exit(status)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
