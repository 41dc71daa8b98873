"""Counting distinct samples, by the serial numbers that travel with them.

Owns the set of serial numbers. Must not know of epochs, ranks or time.
"""

from __future__ import annotations

from collections.abc import Sequence


class SerialSet:
    """A set of serial numbers from 0 on, a byte for each: several times as fast as Python's set, and each step of each rank needs it."""

    def __init__(self) -> None:
        self._seen = bytearray()

    def add(self, serials: Sequence[int]) -> None:
        if not serials:
            return
        seen = self._seen
        seen.extend(bytes(max(0, max(serials) + 1 - len(seen))))
        for serial in serials:
            seen[serial] = 1

    def __len__(self) -> int:
        return self._seen.count(1)
