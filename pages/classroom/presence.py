"""Who of a class is here: those with an open stream, and those whose line was lost a moment ago and who are expected back.

Owns counting, in the memory of this process: other web replicas count their own. A phone that vanishes without a word is here until its
line is found dead, which takes minutes. Must not know streams.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

EXPECTED_S = 90.0
"""How long somebody counts as reconnecting: a phone in a lift, a tab that the browser put to sleep."""


class Presence:
    """Participants by their number; several tabs of one browser are one participant."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._open: Counter[int] = Counter()
        self._left: dict[int, float] = {}

    def came(self, person: int) -> None:
        self._open[person] += 1
        self._left.pop(person, None)

    def went(self, person: int, *, expected: bool = True) -> None:
        """A stream has ended. `expected`: they were not sent away."""
        self._open[person] -= 1
        if self._open[person] <= 0:
            del self._open[person]
            if expected:
                self._left[person] = self._now()

    @property
    def here(self) -> int:
        return len(self._open)

    @property
    def reconnecting(self) -> int:
        since_s = self._now() - EXPECTED_S
        self._left = {person: left_s for person, left_s in self._left.items() if left_s > since_s}
        return len(self._left)
