"""What a training script of the catalog is given: its settings, data, network and device.

Owns the small vocabulary that the scripts share. Must not hold any of a scenario's logic.
"""

from __future__ import annotations

import datetime
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn

from scenarios.catalog import PAUSE_EVERY, SCENARIOS
from scenarios.config import WATCHED_EPOCHS, RunConfig
from scenarios.worker.data import Samples
from scenarios.worker.report import Send
from scenarios.worker.stage import Wrapped, stage_of


class Job:
    """One rank's view of its run."""

    def __init__(self, config: RunConfig, *, rank: int, world: int, collective_limit_s: float, send: Send) -> None:
        self.config = config
        self.seed = config.seed
        self.gpus = config.gpus
        """Of the run; a script whose one process drives them all cares."""
        self.batch = config.batch
        """Samples per GPU and step."""
        self.hand_off = config.hand_off
        self.epochs = config.epochs or (WATCHED_EPOCHS if config.steps is None else config.steps)
        self.local_rank = int(os.environ.get("LOCAL_RANK", rank))
        """This rank's GPU among those of its node."""
        self.collective_limit = datetime.timedelta(seconds=collective_limit_s)
        self._stage = stage_of(
            config, rank=rank, local_rank=self.local_rank, world=world, collective_limit_s=collective_limit_s, send=send
        )
        self.device = self._stage.torch_device
        self.backend = self._stage.backend
        """Of torch.distributed: nccl between real GPUs, gloo between virtual ones."""
        self.workers = self._stage.workers
        """Processes of a DataLoader."""
        self.pause_every = PAUSE_EVERY
        """Steps between two validations, or two checkpoints."""

    def dataset(self) -> Samples:
        """The training data: samples that know their serial number."""
        return self._stage.dataset()

    def held_out(self) -> Samples:
        """The samples to validate with."""
        return self._stage.held_out()

    @property
    def checkpoint_file(self) -> str:
        """Where a checkpoint goes: written, and not kept."""
        return self._stage.checkpoint_file

    def network(self, *, default: str, decodes: bool = False) -> nn.Module:
        """The network to train: the one that --model names, else `default`. With `decodes` it takes what `upload` returns, and decodes it.

        On virtual GPUs a small proxy is computed and the displayed model is charged.
        """
        assert default == SCENARIOS[self.config.scenario].model, "the catalog and its description name different networks"
        return self._stage.network(decodes=decodes).to(self.device)

    def decode(self, files: Tensor) -> Tensor:
        """Copy encoded samples to this rank's GPU; decode and augment them there."""
        return self._stage.decode(files).to(self.device)

    def upload(self, files: Tensor) -> Tensor:
        """Copy encoded samples to this process's first GPU, as they are, and wait until they are there."""
        return self._stage.upload(files).to(self.device)

    @property
    def hand_off_device(self) -> torch.device:
        """Where shards lie when rank 0 hands them out: in host memory, or on the GPU for NCCL."""
        return self._stage.hand_off_device

    @property
    def hand_off_group(self) -> dist.ProcessGroup | None:
        """The process group of the hand-off; None is the default group."""
        return self._stage.hand_off_group

    def empty_batch(self) -> tuple[Tensor, Tensor]:
        """Room for one shard of decoded samples and its labels."""
        return self._stage.empty_batch(self.batch)

    def observe(self, model: Wrapped, optimizer: torch.optim.Optimizer, *, steps_per_epoch: int) -> None:
        """Watch training from here on. Call it again when the steps per epoch change."""
        self._stage.observe(model, optimizer, steps_per_epoch=steps_per_epoch)

    def finish(self) -> None:
        """Training has ended as it should."""
        self._stage.finish()

    def broke_off(self) -> None:
        """Training has failed."""
        self._stage.broke_off()

    def checksum(self) -> str | None:
        """Of the trained parameters; None before anything was observed."""
        return self._stage.checksum()
