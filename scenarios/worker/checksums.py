"""Checksums of parameters: equal for replicas that agree to the last bit.

On a GPU the device itself computes one, and only a number for each piece travels to the host: whole numbers modulo 2^64, so that neither
the device nor the order of summation matters. Owns the arithmetic. Buffers are left out, for BatchNorm's differ between healthy replicas.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor

PIECE = 1 << 22
"""Elements at a time: what lies between takes some 100 MB."""


@torch.no_grad()
def checksum(parameters: Iterable[Tensor]) -> str:
    """First 16 hex digits of a digest over fp32 parameters. An odd weight for each place makes any single change visible."""
    sums: list[Tensor] = []
    for parameter in parameters:
        for piece in parameter.detach().reshape(-1).split(PIECE):
            weights = torch.arange(1, 2 * len(piece), 2, dtype=torch.int64, device=piece.device)
            sums.append((piece.view(torch.int32).to(torch.int64) * weights).sum())
    numbers = torch.stack(sums).tolist() if sums else []
    return hashlib.sha256(b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)).hexdigest()[:16]


def host_checksum(parameters: Iterable[Tensor]) -> str:
    """First 16 hex digits of sha256 over parameters in host memory."""
    digest = hashlib.sha256()
    for parameter in parameters:
        digest.update(parameter.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
