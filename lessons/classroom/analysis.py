"""What the votes of a class say about its items: how hard each was, whether it told those who know from those who do not, what changed.

    facility         share of right answers in the first vote
    discrimination   correlation (point-biserial) of being right at an item with the share of right answers at the other items
    change           right or wrong in the first vote x right or wrong in the second, of those who cast both
    gain             of those who were wrong in the first vote, the share that was right in the second

Nothing is said of fewer than five votes: it would be about persons. Hands that were counted in the room are in the shares, and nowhere
else, because nobody knows whose they are. Owns these definitions. Must not store or draw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from lessons.classroom.memory import LiveClass
from lessons.classroom.model import ROUNDS, Round, Vote
from lessons.model import Lesson

FEWEST = 5
"""Votes, below which nothing is said."""

LessonOf = Callable[[str], Lesson | None]


@dataclass(frozen=True, kw_only=True)
class Change:
    """Participants who cast both votes, by how they did."""

    stayed_right: int
    became_right: int
    became_wrong: int
    stayed_wrong: int

    @property
    def gain(self) -> float | None:
        """None where too few were wrong in the first vote."""
        wrong = self.became_right + self.stayed_wrong
        return self.became_right / wrong if wrong >= FEWEST else None


@dataclass(frozen=True, kw_only=True)
class ItemAnalysis:
    """The figures of one item; None stands for too few votes. Shares are 0..1."""

    item_no: int
    lesson_id: str
    lesson: Lesson | None
    """None where it is no longer there: then nobody knows which answer was right."""
    counts: Mapping[Round, Mapping[str, int]]
    """Round -> choice -> votes, hands included."""
    shares: Mapping[Round, Mapping[str, float] | None]
    hands: int
    facility: float | None
    second_facility: float | None
    discrimination: float | None
    distractors: Mapping[str, float] | None
    """Wrong option -> its share of the first vote."""
    change: Change | None
    predicted_right: float | None
    """Share that predicted the picture which the cause with the most votes draws."""


def analyse(live: LiveClass, lesson_of: LessonOf) -> tuple[ItemAnalysis, ...]:
    """Every item that has a vote or a hand, in order."""
    with live.lock:
        removed = {person.id for person in live.people.values() if person.removed}
        cast = {
            key: {person: vote for person, vote in by_person.items() if person not in removed} for key, by_person in live.votes.items()
        }
        counts = {number: {each: live.counts(number, each) for each in ROUNDS} for number in range(1, len(live.state.lesson_ids) + 1)}
        state = live.state
    lessons = {number: lesson_of(lesson_id) for number, lesson_id in enumerate(state.lesson_ids, start=1)}
    right = {number: _right(cast.get((number, "first"), {}), lesson) for number, lesson in lessons.items() if lesson}
    found = []
    for number, lesson_id in enumerate(state.lesson_ids, start=1):
        if not any(counts[number].values()):
            continue
        first, second = counts[number]["first"], counts[number]["second"]
        lesson = lessons[number]
        hands = sum(sum(state.hands.get(f"{number}.{each}", {}).values()) for each in ROUNDS)
        found.append(ItemAnalysis(
            item_no=number, lesson_id=lesson_id, lesson=lesson, counts=counts[number],
            shares={each: _shares(counts[number][each]) for each in ROUNDS}, hands=hands,
            facility=_facility(first, lesson), second_facility=_facility(second, lesson),
            discrimination=discrimination(right, number), distractors=_distractors(first, lesson),
            change=None if lesson is None else _change(right[number], _right(cast.get((number, "second"), {}), lesson)),
            predicted_right=_predicted_right(counts[number], lesson),
        ))
    return tuple(found)


def discrimination(right: Mapping[int, Mapping[int, bool]], item_no: int) -> float | None:
    """`right`: item -> participant -> whether right. Of those who answered another item too; None where all did alike."""
    pairs = []
    for person, was_right in right.get(item_no, {}).items():
        others = [answers[person] for number, answers in right.items() if number != item_no and person in answers]
        if others:
            pairs.append((float(was_right), fmean(others)))
    if len(pairs) < FEWEST:
        return None
    mean_x, mean_y = fmean(x for x, _ in pairs), fmean(y for _, y in pairs)
    spread_x, spread_y = sum((x - mean_x) ** 2 for x, _ in pairs), sum((y - mean_y) ** 2 for _, y in pairs)
    if not spread_x or not spread_y:
        return None
    return sum((x - mean_x) * (y - mean_y) for x, y in pairs) / sqrt(spread_x * spread_y)


def _right(cast: Mapping[int, Vote], lesson: Lesson) -> dict[int, bool]:
    return {person: vote.choice == lesson.key.id for person, vote in cast.items()}


def _shares(counts: Counter[str]) -> dict[str, float] | None:
    total = counts.total()
    return {choice: count / total for choice, count in counts.items()} if total >= FEWEST else None


def _facility(counts: Counter[str], lesson: Lesson | None) -> float | None:
    return None if lesson is None or counts.total() < FEWEST else counts[lesson.key.id] / counts.total()


def _distractors(counts: Counter[str], lesson: Lesson | None) -> dict[str, float] | None:
    if lesson is None or counts.total() < FEWEST:
        return None
    return {option.id: counts[option.id] / counts.total() for option in lesson.options if not option.right}


def _change(first: Mapping[int, bool], second: Mapping[int, bool]) -> Change | None:
    moves = Counter((first[person], second[person]) for person in first if person in second)
    if moves.total() < FEWEST:
        return None
    return Change(
        stayed_right=moves[True, True], became_right=moves[False, True], became_wrong=moves[True, False], stayed_wrong=moves[False, False]
    )


def _predicted_right(counts: Mapping[Round, Counter[str]], lesson: Lesson | None) -> float | None:
    votes = counts["second"] or counts["first"]
    option = lesson.option(most_voted(votes) or "") if lesson else None
    cause = lesson.cause(option.causes[0]) if lesson and option else None
    total = counts["predict"].total()
    return None if cause is None or total < FEWEST else counts["predict"][cause.draws] / total


def most_voted(counts: Mapping[str, int]) -> str | None:
    """The choice with the most votes; of several, the first in the alphabet of ids, so that everybody agrees."""
    return min(counts, key=lambda choice: (-counts[choice], choice)) if counts else None
