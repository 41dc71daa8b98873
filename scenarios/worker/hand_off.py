"""`dist.scatter` on virtual GPUs: the real scatter, charged as a hand-off over the host or over NCCL.

Owns that one operation. A receiver's clock is never earlier than the sender's plus the transfer.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from scenarios.config import RunConfig
from scenarios.costs import pricing
from scenarios.costs.models import MODELS
from scenarios.virtual.device import VirtualDevice
from scenarios.worker.exchange import FLOATS_PER_INTEGER, decode, encode

_real_scatter = dist.scatter


class VirtualScatter:
    """Stands in for `torch.distributed.scatter` in a rank's process. Floating tensors are sample batches; others ride along."""

    def __init__(self, device: VirtualDevice, *, config: RunConfig, rank: int, world: int) -> None:
        self._device = device
        self._rank, self._world = rank, world
        self._over_host = config.hand_off == "cpu"
        self._bus_gb_s = pricing.link_of(config.gpu, config.link).bus_gb_s
        self._sample_bytes = MODELS[config.model].decoded_bytes_per_sample

    def __call__(self, tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int = 0, group: Any = None) -> None:
        if not tensor.is_floating_point():
            _real_scatter(tensor, scatter_list, src=src, group=group)
            return
        shard_bytes = len(tensor) * self._sample_bytes
        if self._over_host:
            self._charge_host(self._exchange(tensor, scatter_list, src, group, self._sent_over_host(shard_bytes, src)), shard_bytes, src)
        else:
            arrived_ns = max(self._device.comm_ns, self._device.compute_ns, self._device.host_ns)
            latest_ns = torch.tensor([arrived_ns])
            dist.all_reduce(latest_ns, op=dist.ReduceOp.MAX)
            start_ns = int(latest_ns.item())
            transfer_ns = round(shard_bytes * (self._world - 1) / self._bus_gb_s)
            _real_scatter(tensor, scatter_list, src=src, group=group)
            self._device.receive(start_ns=start_ns, end_ns=start_ns + transfer_ns)

    def _sent_over_host(self, shard_bytes: int, src: int) -> list[int]:
        """On the sending rank: when each rank's shard lies in shared memory. Empty elsewhere."""
        if self._rank != src:
            return []
        self._device.download(shard_bytes * self._world)
        sent_ns = []
        for rank in range(self._world):
            if rank != src:
                self._device.host_copy(shard_bytes)
            sent_ns.append(self._device.host_ns)
        return sent_ns

    def _exchange(self, tensor: Tensor, shards: list[Tensor] | None, src: int, group: Any, sent_ns: list[int]) -> int:
        """Scatter shards and times in one message; returns when this rank's shard was sent."""
        received = torch.empty(FLOATS_PER_INTEGER + tensor.numel())
        parcels = None
        if shards is not None and self._rank == src:
            parcels = [torch.cat([encode([at]), shard.flatten()]) for shard, at in zip(shards, sent_ns, strict=True)]
        _real_scatter(received, parcels, src=src, group=group)
        tensor.copy_(received[FLOATS_PER_INTEGER:].view_as(tensor))
        return decode(received[:FLOATS_PER_INTEGER])[0]

    def _charge_host(self, sent_ns: int, shard_bytes: int, src: int) -> None:
        if self._rank != src:
            self._device.host_wait(sent_ns)
        self._device.upload(shard_bytes)
