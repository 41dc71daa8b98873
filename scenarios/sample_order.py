"""Whether an epoch brings the samples in the order of the epoch before.

Owns that comparison, step by step on each rank. Must not know of time, nor what a sample is.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import ceil


def epoch_of(progress: float) -> int:
    """The epoch, from 0 on, of a step that ended at `progress` epochs: the last step of an epoch still belongs to it."""
    return max(0, ceil(progress - 1e-6) - 1)


class SampleOrder:
    """Eight bytes a step and rank, of two epochs; older ones are forgotten."""

    def __init__(self) -> None:
        self._epoch: dict[int, int] = {}
        self._before: dict[int, array[int]] = {}
        self._present: dict[int, array[int]] = {}
        self._compared: dict[int, int] = {}
        self._repeated: dict[int, int] = {}

    def add(self, rank: int, epoch: int, serials: Sequence[int]) -> None:
        """The samples of the next step of `rank`, in the order in which it saw them."""
        if not serials:
            return
        known = self._epoch.get(rank, epoch)
        if epoch != known or rank not in self._present:
            self._before[rank] = self._present.get(rank, array("q")) if epoch == known + 1 else array("q")
            self._present[rank] = array("q")
            self._epoch[rank] = epoch
        before, present = self._before[rank], self._present[rank]
        at, mark = len(present), hash(tuple(serials))
        present.append(mark)
        if at < len(before):
            self._compared[epoch] = self._compared.get(epoch, 0) + 1
            self._repeated[epoch] = self._repeated.get(epoch, 0) + (before[at] == mark)

    def repeated_pct(self, epoch: int) -> float | None:
        """Of the steps of `epoch` so far, over all ranks, the percentage that saw the samples of the same step of the epoch before."""
        compared = self._compared.get(epoch, 0)
        return 100.0 * self._repeated[epoch] / compared if compared else None
