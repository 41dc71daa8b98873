"""Who runs next, and how long the others wait: a line with two priorities, visitors before background work.

Owns the order and the wait estimate. Knows run ids only; must not start, stop or record anything, nor read a clock.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

Priority = Literal["visitor", "background"]


class QueueFull(ValueError):
    """Too many runs wait; the text is for people."""


class RunQueue:
    """First come, first served within a priority. Not thread-safe: its owner holds a lock."""

    def __init__(self) -> None:
        self._lines: dict[Priority, list[str]] = {"visitor": [], "background": []}

    def __len__(self) -> int:
        return sum(len(line) for line in self._lines.values())

    def __iter__(self) -> Iterator[str]:
        """Ids in the order in which they will start."""
        yield from self._lines["visitor"]
        yield from self._lines["background"]

    def visitors(self) -> int:
        return len(self._lines["visitor"])

    def add(self, run_id: str, priority: Priority) -> None:
        self._lines[priority].append(run_id)

    def remove(self, run_id: str) -> bool:
        """True if it was waiting."""
        for line in self._lines.values():
            if run_id in line:
                line.remove(run_id)
                return True
        return False

    def promote(self, run_id: str) -> None:
        """A visitor wants what was background work: it joins the end of the visitors' line."""
        if run_id in self._lines["background"]:
            self._lines["background"].remove(run_id)
            self._lines["visitor"].append(run_id)

    def pop(self, may_start: Callable[[str], bool] = lambda run_id: True) -> str | None:
        """The first that may start now."""
        for line in self._lines.values():
            for index, run_id in enumerate(line):
                if may_start(run_id):
                    return line.pop(index)
        return None

    def place(self, run_id: str) -> int | None:
        """1 for the next to start; None where it does not wait."""
        return next((number for number, waiting in enumerate(self, start=1) if waiting == run_id), None)


def wait_s(place: int, *, slots: int, remaining_s: Sequence[float], ahead_s: Callable[[int], float]) -> float:
    """Seconds until the run at `place` starts: play the line through `slots` places of work.

    `remaining_s` are the expected rests of the live runs; `ahead_s(n)` is the expected duration of the run at place n.
    """
    free_at_s = sorted([*remaining_s, *[0.0] * max(0, slots - len(remaining_s))])
    heapq.heapify(free_at_s)
    for number in range(1, place):
        heapq.heapreplace(free_at_s, free_at_s[0] + ahead_s(number))
    return free_at_s[0]
