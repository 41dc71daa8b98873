"""Carrying clocks in the gradient bucket: one all-reduce a step serves the gradients and virtual time.

Every rank writes its numbers into its own slot and zeros into the others', so that a sum carries them all. A float32 holds 24-bit
integers exactly; a 60-bit time is three digits of 20 bits. Owns the encoding and the communication hook.
"""

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

# No `from __future__ import annotations` here: DDP compares the hook's annotations with the classes themselves.

BASE = 1 << 20
DIGITS = 3


def encode(numbers: Sequence[int]) -> list[float]:
    """Non-negative integers below 2**60 as three float32-exact digits each."""
    digits: list[float] = []
    for number in numbers:
        assert 0 <= number < BASE**DIGITS, number
        digits += [float(number % BASE), float(number // BASE % BASE), float(number // BASE**2)]
    return digits


def decode(digits: Sequence[float]) -> list[int]:
    parts = [int(digit) for digit in digits]
    return [parts[i] + parts[i + 1] * BASE + parts[i + 2] * BASE**2 for i in range(0, len(parts), DIGITS)]


Slots = list[tuple[list[int], list[float]]]
"""Per rank: its exact integers and its plain floats."""


def gradient_hook(
    world: int, outgoing: Callable[[], tuple[list[int], list[float]]], incoming: Callable[[Slots], None]
) -> Callable[[object, dist.GradBucket], torch.futures.Future[Tensor]]:
    """A DDP communication hook that averages the gradients and exchanges (`integers`, `floats`) of all ranks.

    `outgoing` is called once a step, when the last gradient of the proxy is ready; `incoming` when all have arrived.
    """

    def hook(state: object, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
        assert bucket.is_last(), "the proxy network has one gradient bucket"
        gradients = bucket.buffer()
        integers, floats = outgoing()
        mine = torch.tensor(encode(integers) + floats, dtype=torch.float32)
        rank = dist.get_rank()
        payload = torch.zeros(len(gradients) + world * len(mine))
        torch.div(gradients, world, out=payload[: len(gradients)])
        payload[len(gradients) + rank * len(mine) : len(gradients) + (rank + 1) * len(mine)] = mine
        dist.all_reduce(payload)
        gradients.copy_(payload[: len(gradients)])
        split = DIGITS * len(integers)
        rows = payload[len(gradients) :].view(world, len(mine)).tolist()
        incoming([(decode(row[:split]), row[split:]) for row in rows])
        done: torch.futures.Future[Tensor] = torch.futures.Future()
        done.set_result(gradients)
        return done

    return hook


class Sketch:
    """A random projection of the parameters, by whose distance the distance of two replicas is estimated.

    With k = 64 projections the estimate of a distance has a relative standard error of 1/sqrt(2k), 9 % (Johnson-Lindenstrauss).
    """

    SIZE = 64

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        count = sum(parameter.numel() for parameter in parameters)
        generator = torch.Generator().manual_seed(64)
        self._parameters = parameters
        self._projection = torch.randn(self.SIZE, count, generator=generator) / self.SIZE**0.5

    @torch.no_grad()
    def take(self) -> list[float]:
        flat = torch.cat([parameter.detach().reshape(-1) for parameter in self._parameters])
        sketch: list[float] = (self._projection @ flat).tolist()
        return sketch


def relative_distance(mine: Sequence[float], reference: Sequence[float]) -> float:
    """|mine - reference| / |reference|, of parameter vectors given by their sketches."""
    difference = sum((a - b) ** 2 for a, b in zip(mine, reference, strict=True)) ** 0.5
    norm = sum(b * b for b in reference) ** 0.5
    return float(difference / norm) if norm else 0.0
