"""A few of the parameters, by which the distance of two replicas is estimated where the network is too large for a projection.

Owns the choice: the same on every rank. With k values of comparable size the estimate of a distance is good to about 1/sqrt(2k).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

TENSORS, EACH = 16, 16


class SampledParameters:
    """Sixteen values of each of up to sixteen parameters, spread over the network."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        count = min(TENSORS, len(parameters))
        chosen = [parameters[index * len(parameters) // count] for index in range(count)]
        generator = torch.Generator().manual_seed(64)
        self._parts = [
            (parameter, torch.randint(parameter.numel(), (EACH,), generator=generator).to(parameter.device)) for parameter in chosen
        ]

    @torch.no_grad()
    def take(self) -> Tensor:
        """On the parameters' device."""
        # In the order of memory: flattening a tensor that lies channels last would copy it.
        return torch.cat([parameter.as_strided((parameter.numel(),), (1,))[places] for parameter, places in self._parts])
