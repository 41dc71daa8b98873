"""How far a learner has come, as one object for a page: lessons, marks, what is due, mastery, confusions, and the next step.

    progress = learning.progress(token, load_lessons())

Read in one transaction with four look-ups by index, whatever the number of lessons. Names of causes are in it only where the learner has
seen a verdict on them. Owns the order of the course for a learner and what comes next.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, select

from lessons.attempts import fits
from lessons.cards import cards_of
from lessons.causes import cause_of_lesson
from lessons.judgements import Judgement, seen_by
from lessons.learners import learner_id, well_formed
from lessons.mastery import CauseMastery, Confusion, confusions, mastery
from lessons.model import Lesson, LessonSet
from lessons.mystery_deck import deck_causes
from lessons.reviews import Due, due_of
from lessons.store.tables import attempts

LessonState = Literal["new", "open", "done"]
Step = Literal["start", "continue", "review", "lesson", "mystery"]


@dataclass(frozen=True, kw_only=True)
class LessonProgress:
    """One lesson and one learner."""

    lesson_id: str
    title: str
    topic: str
    minutes: int
    stage: str | None
    """Name of the part of the course that it belongs to."""
    state: LessonState
    """`done` once the explanation was seen; `open` with an answer locked in and more to come."""
    attempt: str | None
    """Token of the attempt to go on with, where it is open."""
    marks: float | None
    """Of the first attempt; None before its first verdict. Later attempts are practice and count no more."""
    right_first: bool | None
    """Whether the very first answer was right; None before its verdict."""


@dataclass(frozen=True, kw_only=True)
class NextStep:
    """What to do now."""

    kind: Step
    """start: the first lesson; continue: what was left open; review: what is due; lesson: the next new one; mystery: practice."""
    lesson_id: str | None = None
    """Of start, continue and lesson."""
    attempt: str | None = None
    """Of continue."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Everything a page shows of a learner."""

    known: bool
    """Whether anything is kept under the token: else there is nothing to export or delete, and no link to give."""
    lessons: tuple[LessonProgress, ...]
    """In the order of this learner's course."""
    done: int
    marks: float
    """All certainty-based marks together: the first attempt at each lesson, every review and every mystery run."""
    answers: int
    """First answers whose verdict was seen, of all kinds."""
    due: Due
    mastery: tuple[CauseMastery, ...]
    """Of every cause that the learner has been told, the least known first: a second try is still to be given without it."""
    causes: int
    """How many causes the course and the mystery runs have: "3 of 14 mastered"."""
    confusions: tuple[Confusion, ...]
    next: NextStep


def progress_in(connection: Connection, token: str, lessons: LessonSet, *, now_s: float | None = None) -> Progress:
    """The progress under a token, inside a transaction; that of a newcomer for an unknown one."""
    own = learner_id(connection, token) if well_formed(token) else None
    attempted = [] if own is None else list(connection.execute(_attempts_of(own)))
    tried = [row for row in attempted if row.kind == "lesson" and _counts(row, lessons)]
    judged = [] if own is None else seen_by(connection, own)
    secret = {row.token for row in attempted if row.stage != "explained"}  # after a wrong first answer there may be a second try
    told = [each for each in judged if each.ref not in secret]
    due = due_of([] if own is None else cards_of(connection, own), lessons, now_s=now_s)
    listed = tuple(_lesson(lesson, lessons, tried, judged) for lesson in course_order(lessons, token))
    causes = {*deck_causes(), *(cause_of_lesson(lesson) for lesson in lessons.lessons)}
    met = sorted({each.cause for each in told if each.try_no == 1})
    return Progress(
        known=own is not None, lessons=listed, done=sum(each.state == "done" for each in listed), marks=_marks(judged, tried),
        answers=sum(each.try_no == 1 for each in judged), due=due, causes=len(causes),
        mastery=tuple(sorted((mastery(cause, told) for cause in met), key=lambda each: (each.share, each.name))),
        confusions=confusions(told, lessons), next=_next(listed, due),
    )


def course_order(lessons: LessonSet, token: str) -> tuple[Lesson, ...]:
    """The lessons as this learner meets them: part by part, the first part as written and each later one shuffled for this learner.

    Lessons that belong to no part come last, as they are written.
    """
    found: list[Lesson] = []
    for number, stage in enumerate(lessons.stages):
        ids = list(stage.lessons)
        if number:
            random.Random(hashlib.sha256(f"{token} {stage.name}".encode()).digest()).shuffle(ids)
        found += [lesson for lesson in map(lessons.get, ids) if lesson is not None]
    listed = {lesson.id for lesson in found}
    return (*found, *(lesson for lesson in lessons.lessons if lesson.id not in listed))


def _attempts_of(own: int) -> Any:
    columns = (attempts.c.token, attempts.c.lesson_id, attempts.c.stage, attempts.c.answers, attempts.c.kind)
    return select(*columns).where(attempts.c.learner_id == own).order_by(attempts.c.created_s, attempts.c.token)


def _counts(row: Row[Any], lessons: LessonSet) -> bool:
    """Not where its lesson was rewritten in the middle of it: the page begins that lesson anew."""
    lesson = lessons.get(row.lesson_id)
    return lesson is None or fits(lesson, row.stage, row.answers)


def _lesson(lesson: Lesson, lessons: LessonSet, tried: Sequence[Row[Any]], judged: Sequence[Judgement]) -> LessonProgress:
    mine = [row for row in tried if row.lesson_id == lesson.id]
    unfinished = [row for row in mine if row.stage != "explained"]
    done = any(row.stage == "explained" for row in mine)
    first = [each for each in judged if mine and each.ref == mine[0].token]
    return LessonProgress(
        lesson_id=lesson.id, title=lesson.title, topic=lesson.topic, minutes=lesson.minutes, stage=lessons.stage_of(lesson.id),
        state="open" if unfinished else "done" if done else "new", attempt=unfinished[-1].token if unfinished else None,
        marks=sum((each.marks for each in first), 0.0) if first else None,
        right_first=next((each.correct for each in first if each.try_no == 1), None),
    )


def _marks(judged: Sequence[Judgement], tried: Sequence[Row[Any]]) -> float:
    first: dict[str, str] = {}
    for row in tried:
        first.setdefault(row.lesson_id, row.token)
    return sum((each.marks for each in judged if each.kind != "lesson" or first.get(each.lesson_id or "") == each.ref), 0.0)


def _next(listed: Sequence[LessonProgress], due: Due) -> NextStep:
    opened = next((each for each in listed if each.state == "open"), None)
    if opened is not None:
        return NextStep(kind="continue", lesson_id=opened.lesson_id, attempt=opened.attempt)
    if due.count:
        return NextStep(kind="review")
    new = next((each for each in listed if each.state == "new"), None)
    if new is None:
        return NextStep(kind="mystery")
    return NextStep(kind="lesson" if any(each.state == "done" for each in listed) else "start", lesson_id=new.lesson_id)
