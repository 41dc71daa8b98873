"""Grading, on the server only: what an answer is worth, and what may be said about it at that moment.

Marks are certainty-based: who is sure and right earns most, who is sure and wrong loses most, so that saying how sure one really is
pays best. Owns scores, marks, the order of shuffled options, and the rule that a wrong first answer is told why it is wrong but not what
would be right. Must not store anything.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from lessons.model import Lesson, Prose

Certainty = Literal["guess", "fairly", "certain"]

TRIES = 2
SCORES = (1.0, 0.5)
"""Points for a right answer at the first and at the second try."""

EARNS: dict[Certainty, float] = {"guess": 1.0, "fairly": 2.0, "certain": 3.0}
"""Marks for a right answer at the first try."""
LOSES: dict[Certainty, float] = {"guess": 0.0, "fairly": 2.0, "certain": 6.0}
"""Marks that a wrong answer at the first try costs; nothing within the first lesson."""
PAYS_FROM_PCT: dict[Certainty, int] = {"guess": 0, "fairly": 67, "certain": 80}
"""The chance of being right from which this certainty gives the most marks on average: p = 3p - 2 + p at 2/3, 4p - 2 = 9p - 6 at 4/5."""
SECOND_TRY = 0.5
"""Marks for a right answer at the second try, whatever the certainty; a wrong one costs nothing more."""


@dataclass(frozen=True, kw_only=True)
class Stake:
    """What is at stake with one certainty, before the answer is locked in: "right +2, wrong -2"."""

    certainty: Certainty
    right: float
    wrong: float
    """0 or less."""
    pays_from_pct: int
    """"Pays if you are right more often than in this many of 100 such answers"; 0 for a guess."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What an answer is told."""

    right: bool
    score: float
    """0..1; 0 for a wrong answer and for one given after the key was shown."""
    marks: float
    """What it earned, or cost (below 0)."""
    final: bool
    """No try is left, or the answer was right: the key may be shown."""
    rebuttal: Prose
    """Of the chosen option: why it is wrong or, for the right one, why it is right."""


def grade(lesson: Lesson, option_id: str, attempt_no: int, certainty: Certainty | None = None, *, costs: bool = False) -> Verdict:
    """The verdict on `option_id` as answer number `attempt_no` (from 1).

    Raises ValueError for an option the lesson does not have, and for an attempt number that is not allowed.
    """
    option = lesson.option(option_id)
    if option is None:
        raise ValueError(f"option={option_id!r}: must be one of {', '.join(known.id for known in lesson.options)}")
    if not 1 <= attempt_no <= TRIES:
        raise ValueError(f"attempt_no={attempt_no}: must be 1 to {TRIES}")
    return Verdict(
        right=option.right, score=SCORES[attempt_no - 1] if option.right else 0.0,
        marks=marks(right=option.right, certainty=certainty, try_no=attempt_no, costs=costs),
        final=option.right or attempt_no == TRIES, rebuttal=option.rebuttal,
    )


def marks(*, right: bool, certainty: Certainty | None, try_no: int = 1, costs: bool = True) -> float:
    """Marks for one answer. Who did not say how sure is taken to guess; without `costs` nothing is lost."""
    if try_no > 1:
        return SECOND_TRY if right else 0.0
    if right:
        return EARNS[certainty or "guess"]
    return 0.0 - LOSES[certainty or "guess"] if costs else 0.0


def stakes(*, costs: bool, try_no: int = 1) -> tuple[Stake, ...]:
    """What each certainty would earn and cost now, in the order guess, fairly, certain: to be shown beside the choice."""
    return tuple(
        Stake(
            certainty=certainty, right=marks(right=True, certainty=certainty, try_no=try_no, costs=costs),
            wrong=marks(right=False, certainty=certainty, try_no=try_no, costs=costs), pays_from_pct=PAYS_FROM_PCT[certainty],
        )
        for certainty in EARNS
    )


def option_order(lesson: Lesson, seed: int | None) -> tuple[str, ...]:
    """The ids of the options in the order in which they are shown: shuffled by `seed`, or as written without one."""
    ids = [option.id for option in lesson.options]
    if seed is not None:
        random.Random(seed).shuffle(ids)
    return tuple(ids)
