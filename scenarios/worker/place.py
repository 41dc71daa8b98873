"""Where a rank of a real run computes: its GPU, and the backend that joins the GPUs.

Owns the naming of both. Which GPU is the current one is the script's business: that is what one of the experiments is about.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch


@dataclass(frozen=True, kw_only=True)
class Place:
    device: torch.device
    backend: str
    """Of torch.distributed."""


def claim_place(local_rank: int) -> Place:
    """The GPU of a rank among those that CUDA shows on its node, counted as NVML counts them: the sampler reads the one it trains on."""
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # CUDA's own order puts the fastest first; read when CUDA starts
    return Place(device=torch.device("cuda", local_rank), backend="nccl")
