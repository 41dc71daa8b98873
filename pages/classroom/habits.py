"""How a room of people votes, roughly: what simulated participants choose, and how long they think.

Owns the distribution, as pure functions of a random generator. Must not know how a vote is sent.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

RIGHT_AT_FIRST = 0.45
"""Share of a room that is right before it has talked: within the 35 to 70 % in which talking pays."""
MOST_LIKED = 0.55
"""Of those who are wrong, the share that takes the likeliest wrong answer."""
CONVINCED = 0.6
"""Of those who were wrong, the share that a neighbour talks round."""
UNSETTLED = 0.05
"""Of those who were right, the share that is talked out of it."""
UNDECIDED = 0.15
"""The share that changes its vote while the vote is open."""
FORESEEN = 0.6
THINKING_S = (1.0, 9.0)


@dataclass(frozen=True, kw_only=True)
class Lean:
    """What a room tends to, by item: right answers, and the picture that a cause draws. Where it says nothing, a room guesses."""

    right: Mapping[int, str] = field(default_factory=dict)
    """Item number -> id of the right option."""
    draws: Mapping[int, str] = field(default_factory=dict)
    """Item number -> silhouette."""


def choose(luck: random.Random, choices: Sequence[str], *, item_no: int, round: str, first: str | None, lean: Lean) -> str:
    """What somebody votes in `round` who voted `first` before talking."""
    if round == "predict":
        return _pick(luck, choices, lean.draws.get(item_no), FORESEEN)
    right = lean.right.get(item_no)
    if round == "first" or first is None or first not in choices:
        return _pick(luck, choices, right, RIGHT_AT_FIRST)
    if right is None or right not in choices:
        return first
    if first == right:
        return _pick(luck, choices, right, 1 - UNSETTLED)
    return right if luck.random() < CONVINCED else first


def thinking_s(luck: random.Random) -> float:
    """Most people answer soon, a few take their time."""
    low, high = THINKING_S
    return low + (high - low) * luck.betavariate(2.0, 4.0)


def _pick(luck: random.Random, choices: Sequence[str], liked: str | None, share: float) -> str:
    """`liked` with this chance; the others, the first of them more often than the rest."""
    others = [choice for choice in choices if choice != liked]
    if liked is not None and liked in choices and (not others or luck.random() < share):
        return liked
    return others[0] if len(others) == 1 or luck.random() < MOST_LIKED else luck.choice(others[1:])
