"""How busy a GPU was in any stretch of time, from the history that the driver keeps: no sample period is missed.

NVML's buffered samples each say the busy share of the stretch that ends at their stamp. The stamps are in microseconds of a clock that
NVML does not name (since boot with some drivers, since 1970 with others), so they are aligned with ours by when they arrive. An idle GPU
may add none to the buffer; then the reading of the moment stands in. Owns this arithmetic. Must not ask NVML.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

LONGEST_US = 1_100_000
"""A sample period is 1/6 s to 1 s (NVML API reference, nvmlUtilization_t); a longer silence means that the buffer is dry."""
USUAL_US = 166_667
STEP_US = 2_000_000
"""Fresh samples that seem this late mean that one of the clocks was set."""


class Busy:
    """The busy share of one GPU over time. Stretches are kept in the driver's clock, questions are in ours."""

    def __init__(self, now_us: int) -> None:
        self._offset_us: int | None = None
        self._pieces: deque[tuple[int, int, float]] = deque()
        self._until_us = now_us
        self._silent = False
        self.seen_us = 0
        """The stamp of the newest sample, in the driver's clock: what to ask from."""

    def add(self, samples: Sequence[tuple[int, float]], now_us: int) -> None:
        """Samples (stamp, percent) that came now, in any order; old ones are passed over."""
        fresh = sorted((stamp, value) for stamp, value in samples if stamp > self.seen_us)
        if not fresh:
            return
        self._silent = False
        self._align(now_us - fresh[-1][0])
        gap_us = USUAL_US
        for number, (stamp, value) in enumerate(fresh):
            before = self.seen_us
            if before and 0 < stamp - before <= LONGEST_US:
                gap_us = stamp - before
            elif number + 1 < len(fresh) and fresh[number + 1][0] - stamp <= LONGEST_US:
                gap_us = fresh[number + 1][0] - stamp  # the first one known, or the first after a silence
            self._append(stamp - gap_us, stamp, value)
            self.seen_us = stamp

    def stand_in(self, value: float, now_us: int, since_us: int) -> None:
        """A reading of the moment, for the time since `since_us` that no sample covers."""
        if self._offset_us is None:
            self._align(0)
        offset = self._offset_us or 0
        self._append(since_us - offset, now_us - offset, value)

    def dry(self, now_us: int) -> bool:
        """Whether the buffer has been silent for longer than a sample period can be, and still is."""
        self._silent = self._silent or now_us - self.covered_until_us > LONGEST_US
        return self._silent

    @property
    def covered_until_us(self) -> int:
        return self._until_us + (self._offset_us or 0)

    def mean(self, from_us: int, until_us: int) -> float | None:
        """Percent busy from `from_us` to `until_us`, weighted by time; None where nothing is known of it."""
        offset = self._offset_us or 0
        low, high = from_us - offset, until_us - offset
        weighted, covered = 0.0, 0
        for start, end, value in self._pieces:
            shared = min(end, high) - max(start, low)
            if shared > 0:
                weighted += shared * value
                covered += shared
        return weighted / covered if covered else None

    def forget(self, before_us: int) -> None:
        """What ended before is not asked for again."""
        low = before_us - (self._offset_us or 0)
        while self._pieces and self._pieces[0][1] <= low:
            self._pieces.popleft()

    def _align(self, offset_us: int) -> None:
        """The sample that arrived soonest after its stamp tells the clocks' distance best."""
        if self._offset_us is None or abs(offset_us - self._offset_us) > STEP_US:
            # Another clock from here on: what came before keeps its place in ours.
            shift = (self._offset_us or 0) - offset_us
            self._until_us += shift
            self._pieces = deque((start + shift, end + shift, value) for start, end, value in self._pieces)
            self._offset_us = offset_us
        elif offset_us < self._offset_us:
            self._offset_us = offset_us

    def _append(self, start: int, end: int, value: float) -> None:
        start = max(start, self._pieces[-1][1]) if self._pieces else start
        if end > start and 0 <= value <= 100:  # drivers have been seen to report nonsense
            self._pieces.append((start, end, value))
        self._until_us = max(self._until_us, end)
