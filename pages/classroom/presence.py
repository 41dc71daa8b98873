"""Who of a class is here: those with an open stream who give a sign of life, and those who were here a moment ago and are expected back.

A phone that vanishes, with its battery or out of range, closes nothing: its line looks alive for minutes. So phones say now and then that
they are there, and one that has fallen silent is not. Owns counting, in the memory of this process: other web replicas count their own.
Must not know streams.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

EXPECTED_S = 90.0
"""How long somebody counts as reconnecting: a phone in a lift, a tab that the browser put to sleep."""
SILENT_S = 35.0
"""Who has said nothing for so long is not here. A phone says something every 15 s: one of its signs may get lost."""


class Presence:
    """Participants by their number; several tabs of one browser are one participant."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._open: Counter[int] = Counter()
        self._heard: dict[int, float] = {}
        """When they gave a sign last. Who never did is believed by the line alone: a proxy may lead signs elsewhere."""
        self._left: dict[int, float] = {}

    def came(self, person: int) -> None:
        self._open[person] += 1
        self._left.pop(person, None)
        if person in self._heard:
            self.heard(person)

    def heard(self, person: int) -> None:
        """A sign of life. From now on more of them are expected."""
        if person in self._open:
            self._heard[person] = self._now()

    def went(self, person: int, *, expected: bool = True) -> None:
        """A stream has ended. `expected`: they were not sent away."""
        self._open[person] -= 1
        if self._open[person] <= 0:
            del self._open[person]
            silent_s = self._silent_since(person)
            self._heard.pop(person, None)
            if expected:
                self._left[person] = self._now() if silent_s is None else silent_s

    @property
    def here(self) -> int:
        return len(self._open) - len(self._silent())

    @property
    def reconnecting(self) -> int:
        since_s = self._now() - EXPECTED_S
        self._left = {person: left_s for person, left_s in self._left.items() if left_s > since_s}
        return len(self._left) + sum(silent_s > since_s for silent_s in self._silent())

    def _silent(self) -> list[float]:
        """Since when they are, of those whose lines are open."""
        until_s = self._now() - SILENT_S
        return [heard_s + SILENT_S for heard_s in self._heard.values() if heard_s < until_s]

    def _silent_since(self, person: int) -> float | None:
        silent_s = self._heard.get(person, self._now()) + SILENT_S
        return silent_s if silent_s < self._now() else None
