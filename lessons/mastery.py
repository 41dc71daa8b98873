"""How well a learner names each cause, and which ones are taken for one another: computed from the judgements, stored nowhere.

Mastery of a cause has five levels. It rests on first answers only, in lessons, reviews and mystery runs alike:

    not met         never answered
    met             answered, but the last answer was wrong
    named once      right since the last miss
    named twice     right on two occasions since the last miss, at least 20 hours apart
    mastered        right on three occasions since the last miss, each at least 20 hours after the one before

So a right answer never lowers a level, a wrong one never raises it, and nobody masters a cause in one sitting. Owns these rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from lessons.causes import cause_name, cause_of_option, config_of, typical_config
from lessons.judgements import Judgement
from lessons.model import Lesson, LessonSet
from scenarios.config import RunConfig

Level = Literal["not met", "met", "named once", "named twice", "mastered"]
LEVELS: tuple[Level, ...] = ("not met", "met", "named once", "named twice", "mastered")

APART_S = 20 * 3600
"""Two occasions: the next day at about the same time is one."""


@dataclass(frozen=True, kw_only=True)
class CauseMastery:
    """One cause and one learner."""

    cause: str
    name: str
    level: Level
    share: float
    """0 for not met and met, 1 for mastered: for a bar."""
    answered: int
    """First answers to this cause."""
    right: int


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """ "You take X for Y": X was there, Y was named."""

    cause: str
    name: str
    taken_for: str
    taken_for_name: str
    times: int
    last_s: float
    config: RunConfig | None
    """A run of X, as in the lesson where it was mistaken, else a typical one; None for a cause that is no longer known here."""
    taken_for_config: RunConfig | None
    """A run of Y, to be shown beside it."""


def mastery(cause: str, judgements: Iterable[Judgement]) -> CauseMastery:
    """Of one cause; `judgements` oldest first, of any causes."""
    first = [each for each in judgements if each.cause == cause and each.try_no == 1]
    occasions, counted_s = 0, 0.0
    for each in first:
        if not each.correct:
            occasions = 0
        elif occasions == 0 or each.at_s - counted_s >= APART_S:
            occasions, counted_s = occasions + 1, each.at_s
    level = 0 if not first else 1 + min(occasions, len(LEVELS) - 2)
    return CauseMastery(
        cause=cause, name=cause_name(cause), level=LEVELS[level], share=max(0, level - 1) / (len(LEVELS) - 2), answered=len(first),
        right=sum(each.correct for each in first),
    )


def confusions(judgements: Sequence[Judgement], lessons: LessonSet) -> tuple[Confusion, ...]:
    """What is still taken for something else, the most frequent first.

    A confusion is over once the cause was named right, at a first answer, after the last time that it was mistaken.
    """
    pairs: dict[tuple[str, str], list[Judgement]] = defaultdict(list)
    named_s: dict[str, float] = {}
    for each in judgements:
        if each.correct and each.try_no == 1:
            named_s[each.cause] = max(each.at_s, named_s.get(each.cause, 0.0))
        # Two options of a lesson may be the same cause with other knobs: that is no confusion of causes.
        elif not each.correct and each.taken_for not in ("", each.cause):
            pairs[each.cause, each.taken_for].append(each)
    found = [
        _confusion(cause, taken_for, mistaken, lessons)
        for (cause, taken_for), mistaken in pairs.items() if mistaken[-1].at_s >= named_s.get(cause, 0.0)
    ]
    return tuple(sorted(found, key=lambda confusion: (-confusion.times, -confusion.last_s)))


def _confusion(cause: str, taken_for: str, mistaken: Sequence[Judgement], lessons: LessonSet) -> Confusion:
    lesson = next((known for each in reversed(mistaken) if (known := lessons.get(each.lesson_id or ""))), None)
    return Confusion(
        cause=cause, name=cause_name(cause), taken_for=taken_for, taken_for_name=cause_name(taken_for), times=len(mistaken),
        last_s=mistaken[-1].at_s, config=_as_in(lesson, cause), taken_for_config=_as_in(lesson, taken_for),
    )


def _as_in(lesson: Lesson | None, cause: str) -> RunConfig | None:
    """The run by which a lesson shows a cause, else a typical one."""
    for option in lesson.options if lesson else ():
        if lesson is not None and cause_of_option(lesson, option.id) == cause:
            return config_of(lesson, option.causes[0])
    return typical_config(cause)
