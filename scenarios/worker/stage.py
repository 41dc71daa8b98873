"""What a training script is run on: virtual GPUs or real ones, behind one interface, so that the scripts are the same.

Owns the interface and the choice, which the config has made: `backend` says `cuda` where a rank shall use its real GPU.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn

from scenarios.catalog import SCENARIOS, patience_s
from scenarios.config import RunConfig
from scenarios.rank_messages import Send
from scenarios.worker.data import Samples

Wrapped = nn.parallel.DistributedDataParallel | nn.DataParallel[nn.Module]
"""What a script trains: its network, distributed in one way or the other."""


class RunComplete(Exception):
    """The run has shown what it was asked to: every rank raises it after the same step."""


class Stage(Protocol):
    """One rank's GPU."""

    torch_device: torch.device
    backend: str
    """Of torch.distributed."""
    workers: int
    """Processes of a DataLoader."""

    @property
    def checkpoint_file(self) -> str:
        """Where a checkpoint goes; it is not kept."""

    def dataset(self) -> Samples: ...

    def held_out(self) -> Samples: ...

    def network(self, *, decodes: bool) -> nn.Module:
        """The network to train; with `decodes` it takes encoded samples, and decodes them where it runs."""

    def decode(self, files: Tensor) -> Tensor: ...

    def upload(self, files: Tensor) -> Tensor: ...

    @property
    def hand_off_device(self) -> torch.device: ...

    @property
    def hand_off_group(self) -> dist.ProcessGroup | None: ...

    def empty_batch(self, batch: int) -> tuple[Tensor, Tensor]: ...

    def observe(self, model: Wrapped, optimizer: torch.optim.Optimizer, *, steps_per_epoch: int) -> None: ...

    def finish(self) -> None:
        """Training has ended as it should."""

    def broke_off(self) -> None:
        """Training has failed."""

    def checksum(self) -> str | None: ...


def stage_of(config: RunConfig, *, rank: int, local_rank: int, world: int, collective_limit_s: float, send: Send) -> Stage:
    """A real GPU where the config says so. Must be called in the rank's own process: it may be the first to touch CUDA."""
    if config.backend == "cuda":
        from scenarios.worker.real_stage import RealStage

        return RealStage(config, rank=rank, local_rank=local_rank, world=world, collective_limit_s=collective_limit_s, send=send)
    if SCENARIOS[config.scenario].one_process:
        from scenarios.worker.one_process_stage import OneProcessStage

        return OneProcessStage(config, send=send)
    from scenarios.worker.virtual_stage import VirtualStage

    return VirtualStage(
        config, rank=rank, local_rank=local_rank, world=world, send=send, patience_s=patience_s(config.scenario, collective_limit_s)
    )
