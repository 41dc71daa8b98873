"""What the class benchmark calls lost and doubled: a count that could not fail would prove nothing."""

from __future__ import annotations

import pytest

from lessons.learners import hashed
from tests.benchmarks._class_driver import lost_and_doubled


def stored(**choices: list[str]) -> dict[str, list[str]]:
    return {hashed(token): each for token, each in choices.items()}


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (stored(ann=["t1"], bob=["t2"]), (0, 0)),
        (stored(ann=["t1"]), (1, 0)),
        (stored(ann=["t1"], bob=["t3"]), (1, 0)),
        (stored(ann=["t1"], bob=["t2", "t2"]), (0, 1)),
        (stored(ann=["t1"], bob=["t2"], ghost=["t2"]), (0, 1)),
        ({}, (2, 0)),
    ],
)
def test_every_acknowledged_vote_is_looked_for(kept: dict[str, list[str]], expected: tuple[int, int]) -> None:
    assert lost_and_doubled({"ann": "t1", "bob": "t2", "late": None}, kept) == expected
