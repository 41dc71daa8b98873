"""What the ranks of a real run agree on through the process group's store, without a collective of their own.

Owns when the run's time begins, and after which step it ends once enough has been seen. Collectives would disturb what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from torch.distributed.distributed_c10d import _get_default_store

from scenarios.telemetry import SAMPLE_PERIOD_NS

LEAD_STEPS = 4
"""How many steps ahead the end is announced. A rank finishes a step's report only when its GPU has ended the step before, gradients
included; so none is more than two steps ahead of rank 0, and all read the announcement in time."""
_ZERO, _LAST, _PASSES = "shardlab/zero", "shardlab/last", "shardlab/passes"


class Agreement:
    """One rank's part. Made after init_process_group."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._store = _get_default_store()
        self._last: int | None = None

    def zero_unix_ns(self) -> int:
        """When the run's time begins: rank 0's present, on the grid of sample periods that every sampler keeps to."""
        now_ns = time.time_ns()
        return int(self._shared(_ZERO, lambda: now_ns - now_ns % SAMPLE_PERIOD_NS))

    def passes(self, measured: Callable[[], int]) -> int:
        """Rank 0's number, so that decoding is the same work on every rank."""
        return int(self._shared(_PASSES, measured))

    def is_last(self, step: int, *, seen_enough: bool, near: bool) -> bool:
        """Whether the run ends with `step`, on every rank the same. `near`: worth asking the others."""
        if self._last is None and self._rank == 0 and seen_enough:
            self._last = step + LEAD_STEPS
            self._store.set(_LAST, str(self._last))
        elif self._last is None and near and self._store.check([_LAST]):
            self._last = int(self._store.get(_LAST))
        return self._last is not None and step >= self._last

    def _shared(self, key: str, value: Callable[[], int]) -> str:
        if self._rank == 0:
            self._store.set(key, str(value()))
        return self._store.get(key).decode()
