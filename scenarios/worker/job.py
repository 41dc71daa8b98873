"""What a training script of the catalog is given: its settings, data, network and device.

Owns the small vocabulary that the scripts share. Must not hold any of a scenario's logic.
"""

from __future__ import annotations

import datetime

import torch
import torch.distributed as dist
from torch import Tensor, nn

from scenarios.catalog import SCENARIOS
from scenarios.config import WATCHED_EPOCHS, RunConfig
from scenarios.costs.models import MODELS
from scenarios.worker.data import FEATURES, NumberedSamples, ProxyNetwork
from scenarios.worker.report import Send
from scenarios.worker.virtual_stage import VirtualStage


class Job:
    """One rank's view of its run."""

    def __init__(self, config: RunConfig, *, rank: int, world: int, collective_limit_s: float, send: Send) -> None:
        self.config = config
        self.seed = config.seed
        self.batch = config.batch
        """Samples per GPU and step."""
        self.hand_off = config.hand_off
        self.epochs = config.epochs or (WATCHED_EPOCHS if config.steps is None else config.steps)
        self.device = torch.device("cpu")
        """A virtual GPU computes on the CPU; only its time is the card's."""
        self.backend = "gloo"
        self.collective_limit = datetime.timedelta(seconds=collective_limit_s)
        self.workers = 0
        """DataLoader workers. A virtual GPU's are modelled, so that their timing does not depend on this machine."""
        self._stage = VirtualStage(config, rank=rank, world=world, send=send)

    def dataset(self) -> NumberedSamples:
        """The training data: samples that know their serial number."""
        return NumberedSamples(MODELS[self.config.model].epoch_samples, on_fetch=self._stage.fetched)

    def network(self, *, default: str) -> nn.Module:
        """The network to train: the one that --model names, else `default`.

        On virtual GPUs a small proxy is computed and the displayed model is charged.
        """
        assert default == SCENARIOS[self.config.scenario].model, "the catalog and its description name different networks"
        return ProxyNetwork().to(self.device)

    def decode(self, files: Tensor) -> Tensor:
        """Copy encoded samples to this rank's GPU; decode and augment them there."""
        return self._stage.decode(files).to(self.device)

    @property
    def hand_off_device(self) -> torch.device:
        """Where shards lie when rank 0 hands them out: in host memory, or on the GPU for NCCL."""
        return torch.device("cpu") if self.hand_off == "cpu" else self.device

    @property
    def hand_off_group(self) -> dist.ProcessGroup | None:
        """The process group of the hand-off; None is the default group."""
        return None

    def empty_batch(self) -> tuple[Tensor, Tensor]:
        """Room for one shard of decoded samples and its labels."""
        return torch.empty(self.batch, 1 + FEATURES), torch.empty(self.batch, dtype=torch.int64)

    def observe(self, model: nn.parallel.DistributedDataParallel, optimizer: torch.optim.Optimizer, *, steps_per_epoch: int) -> None:
        """Watch training from here on. Call it again when the steps per epoch change."""
        self._stage.observe(model, optimizer, steps_per_epoch=steps_per_epoch)

    def checksum(self) -> str | None:
        """Of the trained parameters; None before anything was observed."""
        return self._stage.checksum()
