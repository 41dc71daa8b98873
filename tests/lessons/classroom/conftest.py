"""A classroom on both databases, with a clock that only a test moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from lessons.classroom import Classroom
from lessons.store import Store


@dataclass
class Clock:
    now_s: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def room(database: Store, clock: Clock) -> Classroom:
    return Classroom(database, clock=clock)


@pytest.fixture
def again(opened: Callable[..., Store], clock: Clock) -> Callable[[], Classroom]:
    """`again()` is the classroom of another server process on the same database."""
    return lambda: Classroom(opened(), clock=clock)
