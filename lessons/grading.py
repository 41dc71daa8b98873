"""Grading, on the server only: what an answer is worth, and what may be said about it at that moment.

Owns scores and the rule that a wrong first answer is told why it is wrong but not what would be right. Must not store anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from lessons.model import Lesson, Prose

TRIES = 2
SCORES = (1.0, 0.5)
"""Points for a right answer at the first and at the second try."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What an answer is told."""

    right: bool
    score: float
    """0..1; 0 for a wrong answer and for one given after the key was shown."""
    final: bool
    """No try is left, or the answer was right: the key may be shown."""
    rebuttal: Prose
    """Of the chosen option: why it is wrong or, for the right one, why it is right."""


def grade(lesson: Lesson, option_id: str, attempt_no: int) -> Verdict:
    """The verdict on `option_id` as answer number `attempt_no` (from 1).

    Raises ValueError for an option the lesson does not have, and for an attempt number that is not allowed.
    """
    option = lesson.option(option_id)
    if option is None:
        raise ValueError(f"option={option_id!r}: must be one of {', '.join(known.id for known in lesson.options)}")
    if not 1 <= attempt_no <= TRIES:
        raise ValueError(f"attempt_no={attempt_no}: must be 1 to {TRIES}")
    score = SCORES[attempt_no - 1] if option.right else 0.0
    return Verdict(right=option.right, score=score, final=option.right or attempt_no == TRIES, rebuttal=option.rebuttal)
