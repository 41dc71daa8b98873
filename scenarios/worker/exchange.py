"""Carrying clocks in the gradient bucket: one collective a step serves the gradients and virtual time.

The gradients' all-reduce is made of one all-gather and a local sum in rank order. Over gloo, among eight ranks on one host, that takes
half the messages of its ring all-reduce, and the sum is the same to the last bit on every rank and in every run. Each rank's clocks ride
in its part. Owns the encoding and the communication hook.
"""

# No `from __future__ import annotations` here: DDP compares the hook's annotations with the classes themselves.

import datetime
from collections.abc import Callable, Sequence
from functools import lru_cache

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import GradBucket

from scenarios.error_meanings import timed_out

FLOATS_PER_INTEGER = 2


def encode(numbers: Sequence[int]) -> Tensor:
    """64-bit integers as float32 values of the same bits. They may be moved, never calculated with."""
    return torch.tensor(numbers, dtype=torch.int64).view(torch.float32)


def decode(floats: Tensor) -> list[int]:
    numbers: list[int] = floats.contiguous().view(torch.int64).tolist()
    return numbers


Slots = list[tuple[list[int], list[float]]]
"""Per rank: its exact integers and its plain floats."""


def gradient_hook(
    world: int, outgoing: Callable[[], tuple[list[int], Tensor]], incoming: Callable[[Slots], None], lost: Callable[[Exception], None],
) -> Callable[[object, GradBucket], torch.futures.Future[Tensor]]:
    """A DDP communication hook that averages the gradients and exchanges (`integers`, `floats`) of all ranks.

    `outgoing` is called once a step, when the last gradient of the proxy is ready; `incoming` when all have arrived, or `lost` with what
    kept them from arriving.
    """

    def hook(state: object, bucket: GradBucket) -> torch.futures.Future[Tensor]:
        assert bucket.is_last(), "the proxy network has one gradient bucket"
        gradients = bucket.buffer()
        integers, floats = outgoing()
        split = FLOATS_PER_INTEGER * len(integers)
        # The integers go first in a row of even length: a view as 64-bit integers wants 8-byte alignment.
        mine = torch.cat([encode(integers), floats, gradients, torch.zeros((len(floats) + len(gradients)) % 2)])
        rows = torch.empty(world, len(mine))
        try:
            dist.all_gather(list(rows.unbind(0)), mine)
        except Exception as error:
            lost(error)
            raise
        torch.mean(rows[:, split + len(floats) : split + len(floats) + len(gradients)], dim=0, out=gradients)
        numbers = rows[:, split : split + len(floats)].tolist()
        incoming([(decode(rows[rank, :split]), numbers[rank]) for rank in range(world)])
        done: torch.futures.Future[Tensor] = torch.futures.Future()
        done.set_result(gradients)
        return done

    return hook


HOW_IT_BROKE = "shardlab/how it broke"
"""Key in the ranks' store, set by the first of them that could not go on."""
IN_VAIN, BY_ITSELF = "waited in vain", "broke off by itself"
TOLD_WITHIN = datetime.timedelta(seconds=1)


def waited_in_vain(error: Exception) -> bool:
    """Whether an exchange failed because a rank did not come, and not because one broke off.

    A rank whose wait is over closes its connections, by which its neighbours may hear of it before their own waits are over.
    """
    if timed_out(str(error)):
        say_how_it_broke(IN_VAIN)
    try:
        store = dist.distributed_c10d._get_default_store()
        store.wait([HOW_IT_BROKE], TOLD_WITHIN)
        return bool(store.get(HOW_IT_BROKE) == IN_VAIN.encode())
    except RuntimeError:  # a rank that was killed says nothing
        return False


def say_how_it_broke(how: str) -> None:
    """To the other ranks, which lose their connections to this one. What was said first holds."""
    if not dist.is_initialized():
        return
    try:
        dist.distributed_c10d._get_default_store().compare_set(HOW_IT_BROKE, "", how)
    except RuntimeError:  # whoever keeps the store is gone as well
        return


@lru_cache(maxsize=2)
def projection(rows: int, columns: int) -> Tensor:
    """A random matrix (rows, columns) that keeps lengths on average; cached, so that forked ranks share what the launcher made."""
    matrix = torch.randn(rows, columns, generator=torch.Generator().manual_seed(64))
    return matrix.div_(rows**0.5)


class Sketch:
    """A random projection of the parameters, by whose distance the distance of two replicas is estimated.

    With k = 64 projections the estimate of a distance has a relative standard error of 1/sqrt(2k), 9 % (Johnson-Lindenstrauss).
    """

    SIZE = 64

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = parameters
        self._projection = projection(self.SIZE, sum(parameter.numel() for parameter in parameters))

    @torch.no_grad()
    def take(self) -> Tensor:
        """SIZE numbers; the parameters are not kept."""
        return torch.mv(self._projection, torch.cat([parameter.detach().reshape(-1) for parameter in self._parameters]))


def relative_distance(mine: Sequence[float], reference: Sequence[float]) -> float:
    """|mine - reference| / |reference|, of parameter vectors given by their sketches."""
    difference = sum((a - b) ** 2 for a, b in zip(mine, reference, strict=True)) ** 0.5
    norm = sum(b * b for b in reference) ** 0.5
    return float(difference / norm) if norm else 0.0
