"""`dist.scatter` on virtual GPUs: the real scatter, charged as a hand-off over the host or over NCCL.

Owns that one operation and the exchange of times that it takes; what it costs is `virtual/hand_off.py`'s.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from scenarios.config import RunConfig
from scenarios.costs.models import MODELS
from scenarios.virtual.device import VirtualDevice
from scenarios.virtual.hand_off import hand_out_by_nccl, receive_over_host, send_over_host
from scenarios.worker.exchange import FLOATS_PER_INTEGER, decode, encode

_real_scatter = dist.scatter


class VirtualScatter:
    """Stands in for `torch.distributed.scatter` in a rank's process. Floating tensors are sample batches; others ride along."""

    def __init__(self, device: VirtualDevice, *, config: RunConfig, rank: int, world: int) -> None:
        self._device = device
        self._rank, self._world = rank, world
        self._over_host = config.hand_off == "cpu"
        self._sample_bytes = MODELS[config.model].decoded_bytes_per_sample

    def __call__(self, tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int = 0, group: Any = None) -> None:
        if not tensor.is_floating_point():
            _real_scatter(tensor, scatter_list, src=src, group=group)
            return
        shard_bytes = len(tensor) * self._sample_bytes
        if self._over_host:
            sent_ns = send_over_host(self._device, shard_bytes) if self._rank == src else []
            mine_ns = self._exchange(tensor, scatter_list, src, group, sent_ns)
            receive_over_host(self._device, shard_bytes, src=src, sent_ns=mine_ns)
        else:
            last_ns = torch.tensor([self._device.reach_nccl()])
            dist.all_reduce(last_ns, op=dist.ReduceOp.MAX)
            _real_scatter(tensor, scatter_list, src=src, group=group)
            hand_out_by_nccl(self._device, shard_bytes, src=src, last_ns=int(last_ns.item()))

    def _exchange(self, tensor: Tensor, shards: list[Tensor] | None, src: int, group: Any, sent_ns: list[int]) -> int:
        """Scatter shards and times in one message; returns when this rank's shard was sent."""
        received = torch.empty(FLOATS_PER_INTEGER + tensor.numel())
        parcels = None
        if shards is not None and self._rank == src:
            parcels = [torch.cat([encode([at]), shard.flatten()]) for shard, at in zip(shards, sent_ns, strict=True)]
        _real_scatter(received, parcels, src=src, group=group)
        tensor.copy_(received[FLOATS_PER_INTEGER:].view_as(tensor))
        return decode(received[:FLOATS_PER_INTEGER])[0]
