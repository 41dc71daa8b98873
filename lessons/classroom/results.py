"""The results of a class as tables: one row per participant, and one per item.

A spreadsheet executes none of it (`lessons.exchange.csv_safe`). Tokens and their hashes stay in the store: a participant is a number.
Owns the columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from lessons.classroom.analysis import ItemAnalysis, LessonOf
from lessons.classroom.memory import LiveClass
from lessons.classroom.model import Participant, Round
from lessons.exchange.csv_safe import Cell, csv_text
from lessons.model import Lesson

PERSON_COLUMNS = ("participant", "nickname", "joined_utc", "removed", "answered", "right_first", "right_second")
PERSON_ITEM_COLUMNS = ("first", "first_right", "second", "second_right", "predicted")
"""Per item, after "item1_" and so on."""
ITEM_COLUMNS = (
    "item", "lesson", "title", "votes_first", "votes_second", "predictions", "hands", "right_first_pct", "right_second_pct",
    "discrimination", "stayed_right", "became_right", "became_wrong", "stayed_wrong", "gain_pct", "predicted_right_pct", "counts_first",
    "counts_second", "wrong_shares_pct",
)


def results_csv(live: LiveClass, lesson_of: LessonOf, *, bom: bool = False) -> str:
    """Everybody who joined, in that order; votes by the letter that their option had on the screens."""
    with live.lock:
        everybody = sorted(live.people.values(), key=lambda person: person.id)
        lessons = [lesson_of(lesson_id) for lesson_id in live.state.lesson_ids]
        header = (*PERSON_COLUMNS, *(f"item{number}_{name}" for number in range(1, len(lessons) + 1) for name in PERSON_ITEM_COLUMNS))
        rows = [_person_row(live, number, person, lessons) for number, person in enumerate(everybody, start=1)]
    return csv_text(header, rows, bom=bom)


def items_csv(items: Iterable[ItemAnalysis], *, bom: bool = False) -> str:
    """Figures of fewer than five votes are empty."""
    return csv_text(ITEM_COLUMNS, [_item_row(item) for item in items], bom=bom)


def letter_of(lesson: Lesson | None, choice: str) -> str:
    """The letter on the screens; the id of an option that the lesson no longer has."""
    ids = [option.id for option in lesson.options] if lesson else []
    return chr(ord("A") + ids.index(choice)) if choice in ids else choice


def _person_row(live: LiveClass, number: int, person: Participant, lessons: list[Lesson | None]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    right: dict[Round, int] = {"first": 0, "second": 0}
    answered = 0
    for item_no, lesson in enumerate(lessons, start=1):
        for each in ("first", "second"):
            choice = _choice(live, person, item_no, each)
            was_right = None if lesson is None or choice is None else choice == lesson.key.id
            right[each] += bool(was_right)
            cells += [None if choice is None else letter_of(lesson, choice), was_right]
        cells.append(_choice(live, person, item_no, "predict"))
        answered += _choice(live, person, item_no, "first") is not None
    joined = datetime.fromtimestamp(person.joined_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return (number, person.nickname, joined, person.removed, answered, right["first"], right["second"], *cells)


def _choice(live: LiveClass, person: Participant, item_no: int, round: Round) -> str | None:
    vote = live.votes.get((item_no, round), {}).get(person.id)
    return None if vote is None else vote.choice


def _item_row(item: ItemAnalysis) -> tuple[Cell, ...]:
    change = item.change
    moves = (None,) * 4 if change is None else (change.stayed_right, change.became_right, change.became_wrong, change.stayed_wrong)
    votes = [sum(item.counts[each].values()) for each in ("first", "second", "predict")]
    return (
        item.item_no, item.lesson_id, item.lesson.title if item.lesson else "", *votes, item.hands, _pct(item.facility),
        _pct(item.second_facility), None if item.discrimination is None else round(item.discrimination, 2), *moves,
        _pct(change.gain if change else None), _pct(item.predicted_right),
        _counts(item, "first"), _counts(item, "second"),
        " ".join(f"{letter_of(item.lesson, choice)}:{_pct(share)}" for choice, share in (item.distractors or {}).items()),
    )


def _counts(item: ItemAnalysis, round_name: Round) -> str:
    counts = item.counts[round_name]
    return " ".join(f"{letter}:{count}" for letter, count in sorted((letter_of(item.lesson, name), counts[name]) for name in counts))


def _pct(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)
