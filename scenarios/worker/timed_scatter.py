"""`dist.scatter` on real GPUs: the real one, between two looks at a clock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch.distributed as dist
from torch import Tensor

_real_scatter = dist.scatter


class TimedScatter:
    """Stands in for `torch.distributed.scatter` in a rank's process."""

    def __init__(self, timing: Callable[[int], AbstractContextManager[None]]) -> None:
        """`timing(src)` is entered around each scatter."""
        self._timing = timing

    def __call__(self, tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int = 0, group: Any = None) -> None:
        with self._timing(src):
            _real_scatter(tensor, scatter_list, src=src, group=group)
