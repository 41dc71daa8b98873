"""The queue between DataLoader workers and the training loop, in virtual time.

Workers run ahead of the loop by prefetch x workers batches. Owns that recurrence; must not read any data.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PREFETCH_FACTOR = 2
"""PyTorch's default: batches that each worker keeps ready."""


@dataclass(kw_only=True)
class LoaderQueue:
    """Batch i is fetched by worker i mod `workers`, and not before batch i - workers * PREFETCH_FACTOR was taken.

    Virtual time begins as in a run under way: the first batch is ready at zero, and the workers finish their first ones one after another.
    Starting them is no part of an epoch, and their first batches are no gift to it. A fresh loader's workers all begin at `fresh_ns`; what
    starting their processes takes is not charged.
    """

    workers: int
    fresh_ns: int | None = None
    """When the loader was asked for its first batch, if nothing of it was under way before."""
    _first_fetch_ns: int = 0
    _ready_ns: list[int] = field(default_factory=list)
    _taken_ns: list[int] = field(default_factory=list)

    def take(self, now_ns: int, fetch_ns: int) -> int:
        """The time (>= now_ns) at which the loop that asks at `now_ns` holds the next batch, which a worker needs `fetch_ns` for."""
        index = len(self._ready_ns)
        if index == 0:
            self._first_fetch_ns = fetch_ns
        under_way_ns = self._first_fetch_ns * index // self.workers - self._first_fetch_ns
        began_ns = under_way_ns if self.fresh_ns is None else self.fresh_ns
        worker_free_ns = self._ready_ns[index - self.workers] if index >= self.workers else began_ns
        ahead = self.workers * PREFETCH_FACTOR
        asked_ns = self._taken_ns[index - ahead] if index >= ahead else worker_free_ns
        self._ready_ns.append(max(worker_free_ns, asked_ns) + fetch_ns)
        self._taken_ns.append(max(now_ns, self._ready_ns[-1]))
        return self._taken_ns[-1]
