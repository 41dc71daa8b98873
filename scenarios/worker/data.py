"""The training data and the network that a rank really computes: small, so that eight ranks train on two cores.

Owns the proxy data set and proxy network. Costs are charged elsewhere, for the displayed model.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

FEATURES = 16
CLASSES = 10


class Samples(Dataset[tuple[Tensor, Tensor]]):
    """A data set whose size is known, of samples that carry their serial number, and their labels."""

    @abstractmethod
    def __len__(self) -> int:
        """How many."""


class NumberedSamples(Samples):
    """`size` samples that a small network can learn; the first feature is the sample's serial number.

    The number travels with the sample through loaders, hand-offs and shards, so that what each model really saw can be counted.
    """

    def __init__(self, size: int, on_fetch: Callable[[int], None], *, held_out: bool = False) -> None:
        self.samples, self.labels = numbered_rows(size, held_out=held_out)
        self._on_fetch = on_fetch

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        """A whole batch at once, as DataLoader asks for where it is offered."""
        self._on_fetch(len(indices))
        rows = torch.as_tensor(indices)
        return list(zip(self.samples[rows].unbind(0), self.labels[rows].unbind(0), strict=True))


@lru_cache(maxsize=8)
def numbered_rows(size: int, *, held_out: bool = False) -> tuple[Tensor, Tensor]:
    """(samples, labels) of the data set with `size` samples; cached, so that forked ranks share what the launcher made.

    Held-out samples are others, labelled by the same rule.
    """
    generator = torch.Generator().manual_seed(20_27 if held_out else 20_26)
    features = torch.randn(size, FEATURES, generator=generator)
    directions = torch.randn(FEATURES, CLASSES, generator=torch.Generator().manual_seed(20_28))
    labels = (features @ directions).argmax(dim=1)
    return torch.cat([torch.arange(size, dtype=torch.float32)[:, None], features], dim=1), labels


class ProxyNetwork(nn.Module):
    """A perceptron of seven thousand parameters that ignores the serial number."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(inplace=True), nn.Linear(256, CLASSES))

    def forward(self, samples: Tensor) -> Tensor:
        out: Tensor = self.layers(samples[:, 1:])
        return out


def serial_numbers(samples: Tensor) -> list[int]:
    """Which samples a batch holds."""
    numbers: list[int] = samples[:, 0].to(torch.int64).tolist()
    return numbers
