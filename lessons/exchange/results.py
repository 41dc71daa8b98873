"""Results as tables: one row per answer, and one per lesson.

Reads attempts that it is given, whoever keeps them. A token never leaves: a row names the attempt by a hash of it, and the learner by a
number. Owns the columns. Must not open the store or write files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import fmean

from lessons.attempts import Attempt
from lessons.exchange.csv_safe import Cell, csv_text
from lessons.grading import grade
from lessons.model import Lesson, LessonSet

ANSWER_COLUMNS = (
    "learner", "name", "attempt", "kind", "lesson", "title", "started_utc", "answered_utc", "try", "option", "option_text", "right",
    "certainty", "marks", "predicted", "drew", "prediction_right", "answer_shown_on_request", "finished",
)
LESSON_COLUMNS = (
    "lesson", "title", "domains", "attempts", "answered", "finished", "right_first_pct", "right_second_pct", "shown_on_request_pct",
    "prediction_right_pct", "mean_marks", "first_answers", "most_chosen_wrong",
)
HASH_DIGITS = 12


def answers_csv(
    attempts: Iterable[Attempt], lessons: LessonSet, *, names: Mapping[str, str] | None = None, bom: bool = False
) -> str:
    """One row per answer. `names` gives a learner's name by the `learner` of its rows, where there is one."""
    return csv_text(ANSWER_COLUMNS, answer_rows(attempts, lessons, names=names), bom=bom)


def lessons_csv(attempts: Iterable[Attempt], lessons: LessonSet, *, bom: bool = False) -> str:
    """One row per lesson that was attempted."""
    return csv_text(LESSON_COLUMNS, lesson_rows(attempts, lessons), bom=bom)


def learner_of(attempt: Attempt) -> str:
    """How rows name whoever made `attempt`; one that is nobody's is named by itself."""
    return f"attempt-{_hashed(attempt.token)}" if attempt.learner_id is None else f"learner-{attempt.learner_id}"


def answer_rows(attempts: Iterable[Attempt], lessons: LessonSet, *, names: Mapping[str, str] | None = None) -> Iterator[tuple[Cell, ...]]:
    """By lesson as given; an answer that the lesson no longer has keeps its id, without a judgement."""
    for attempt in attempts:
        lesson = lessons.get(attempt.lesson_id)
        for number, option_id in enumerate(attempt.answers, start=1):
            judged = _judged(lesson, attempt, number)
            predicted = attempt.predictions[number - 1] if number <= len(attempt.predictions) else None
            yield (
                learner_of(attempt), (names or {}).get(learner_of(attempt), ""), _hashed(attempt.token), attempt.kind, attempt.lesson_id,
                "" if lesson is None else lesson.title, _utc(attempt.created_s), _utc(attempt.changed_s), number, option_id, judged.text,
                judged.right, attempt.certainties[number - 1] if number <= len(attempt.certainties) else None, judged.marks, predicted,
                judged.drew, None if predicted is None or judged.drew is None else predicted == judged.drew, attempt.shown,
                attempt.stage == "explained",
            )


def lesson_rows(attempts: Iterable[Attempt], lessons: LessonSet) -> Iterator[tuple[Cell, ...]]:
    """In the order of the course; percentages are of the attempts with an answer."""
    tallies: dict[str, _Tally] = {}
    for attempt in attempts:
        tallies.setdefault(attempt.lesson_id, _Tally()).add(lessons.get(attempt.lesson_id), attempt)
    order = [lesson.id for lesson in lessons.lessons]
    for lesson_id in sorted(tallies, key=lambda name: (order.index(name) if name in order else len(order), name)):
        yield (lesson_id, *tallies[lesson_id].cells(lessons.get(lesson_id)))


@dataclass(frozen=True, kw_only=True)
class _Judged:
    text: str = ""
    right: bool | None = None
    marks: float | None = None
    drew: str | None = None


@dataclass(kw_only=True)
class _Tally:
    """What happened at one lesson."""

    attempts: int = 0
    finished: int = 0
    first: list[str] = field(default_factory=list)
    """First answers, by option."""
    right: list[int] = field(default_factory=list)
    """At which try an attempt was right; 0 for one that was not."""
    shown: int = 0
    predictions: list[bool] = field(default_factory=list)
    marks: list[float] = field(default_factory=list)

    def add(self, lesson: Lesson | None, attempt: Attempt) -> None:
        self.attempts += 1
        self.finished += attempt.stage == "explained"
        if not attempt.answers:
            return
        self.first.append(attempt.answers[0])
        self.shown += attempt.shown
        judged = [_judged(lesson, attempt, number) for number in range(1, len(attempt.answers) + 1)]
        self.right.append(next((number for number, each in enumerate(judged, start=1) if each.right), 0))
        self.marks.append(sum(each.marks or 0.0 for each in judged))
        pairs = zip(attempt.predictions, judged, strict=False)
        self.predictions += [said == each.drew for said, each in pairs if said is not None and each.drew is not None]

    def cells(self, lesson: Lesson | None) -> tuple[Cell, ...]:
        key = lesson.key.id if lesson else None
        wrong = sorted({option for option in self.first if option != key}, key=lambda option: (-self.first.count(option), option))
        return (
            lesson.title if lesson else "", "; ".join(lesson.exam_domains) if lesson else "", self.attempts, len(self.first), self.finished,
            _pct(self.right.count(1), len(self.first)) if lesson else None, _pct(self.right.count(2), len(self.first)) if lesson else None,
            _pct(self.shown, len(self.first)), _pct(sum(self.predictions), len(self.predictions)),
            round(fmean(self.marks), 2) if self.marks and lesson else None,
            " ".join(f"{option}:{self.first.count(option)}" for option in sorted(set(self.first))), wrong[0] if wrong and lesson else None,
        )


def _judged(lesson: Lesson | None, attempt: Attempt, number: int) -> _Judged:
    option = lesson.option(attempt.answers[number - 1]) if lesson else None
    cause = lesson.cause(option.causes[0]) if lesson and option else None
    if lesson is None or option is None or cause is None:
        return _Judged()
    certainty = attempt.certainties[number - 1] if number <= len(attempt.certainties) else None
    marks = grade(lesson, option.id, number, certainty, costs=attempt.costs).marks
    # An answer that was shown on request earns nothing; what a wrong one cost stays lost.
    return _Judged(text=option.text, right=option.right, marks=min(0.0, marks) if attempt.shown else marks, drew=cause.draws)


def _hashed(token: str) -> str:
    return hashlib.sha256(f"shardlab results {token}".encode()).hexdigest()[:HASH_DIGITS]


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _pct(part: int, whole: int) -> float | None:
    return round(100.0 * part / whole, 1) if whole else None
