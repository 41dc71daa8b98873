"""What is due: a cause comes back as a mystery run or as another telling of the same symptom, never the same way twice in a row.

    due = reviews.due(learner, lessons)                 # "3 due, 6 minutes", or when the next one is
    item = reviews.begin(learner, lessons)              # an Attempt of kind "review", a Mystery, or None: nothing is due

Which cause is due is a secret like any answer: pages are given counts. Owns the choice of the form. Dates are those of `lessons.cards`.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, select

from lessons import mystery
from lessons.attempts import Attempt, insert_attempt, open_review
from lessons.cards import MYSTERY, Card, cards_of, wording_form
from lessons.causes import cause_of_lesson
from lessons.judgements import seen_by
from lessons.learners import learner_id, well_formed
from lessons.model import Lesson, LessonSet
from lessons.mystery import Mystery
from lessons.mystery_deck import deck_causes
from lessons.store import Store
from lessons.store.tables import mysteries

MINUTES = 2
"""How long one item takes, whatever its form."""


@dataclass(frozen=True, kw_only=True)
class Due:
    """What waits for a learner. Says nothing about which causes they are."""

    count: int
    minutes: int
    next_due_s: float | None
    """Unix time at which the next one will be due where none is now; None where there is nothing to come back."""


class Reviews:
    """The reviews of one store. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def due(self, learner: str, lessons: LessonSet, *, now_s: float | None = None) -> Due:
        """How much is due now. Raises StoreError."""
        with self._store.read() as connection:
            own = learner_id(connection, learner) if well_formed(learner) else None
            return due_of([] if own is None else cards_of(connection, own), lessons, now_s=now_s)

    def begin(
        self, learner: str, lessons: LessonSet, *, now_s: float | None = None, seed: int | None = None
    ) -> Attempt | Mystery | None:
        """The review that is under way, or the next one that is due; None where nothing is. Raises StoreError.

        A review is under way until its cause was named: closing the browser loses nothing.
        """
        if not well_formed(learner):
            return None
        rng = random.Random(secrets.randbits(53) if seed is None else seed)
        with self._store.write() as connection:
            own = learner_id(connection, learner)
            if own is None:
                return None
            under_way = open_review(connection, own, lessons) or _open_mystery(connection, own)
            if under_way is not None:
                return under_way
            ready = _due_now(cards_of(connection, own), lessons, now_s)
            return _ask(connection, own, ready[0], lessons, rng) if ready else None


def due_of(cards: Collection[Card], lessons: LessonSet, *, now_s: float | None = None) -> Due:
    """`Reviews.due`, of cards that were read already."""
    now_s = time.time() if now_s is None else now_s
    asked = _askable(cards, lessons)
    count = sum(card.is_due(now_s) for card in asked)
    next_due_s = None if count else min((card.due_s for card in asked), default=None)
    return Due(count=count, minutes=count * MINUTES, next_due_s=next_due_s)


def forms_of(cause: str, lessons: LessonSet) -> list[tuple[str, Lesson | None, int | None]]:
    """Every way in which a cause can be asked: (form, lesson, wording); a mystery run has neither lesson nor wording."""
    found: list[tuple[str, Lesson | None, int | None]] = [(MYSTERY, None, None)] if cause in deck_causes() else []
    for lesson in lessons.lessons:
        if cause_of_lesson(lesson) == cause:
            found += [(wording_form(lesson.id, number), lesson, number) for number in (*range(len(lesson.wordings)), None)]
    return found


def _due_now(cards: Collection[Card], lessons: LessonSet, now_s: float | None) -> list[Card]:
    now_s = time.time() if now_s is None else now_s
    return [card for card in _askable(cards, lessons) if card.is_due(now_s)]


def _askable(cards: Collection[Card], lessons: LessonSet) -> list[Card]:
    """Those that something still asks for: a lesson may have been taken away."""
    asked = {*deck_causes(), *(cause_of_lesson(lesson) for lesson in lessons.lessons)} if cards else set()
    return [card for card in cards if card.cause in asked]


def _ask(connection: Connection, own: int, card: Card, lessons: LessonSet, rng: random.Random) -> Attempt | Mystery:
    forms = forms_of(card.cause, lessons)
    others = [form for form in forms if form[0] != card.last_form] or forms
    # The lesson's own text has been read with its explanation: it comes back only where there is nothing else.
    fresh = [form for form in others if form[0] == MYSTERY or form[2] is not None] or others
    live = [form for form in fresh if form[0] == MYSTERY]
    told = [form for form in fresh if form[0] != MYSTERY]
    _, lesson, wording = rng.choice(live if live and (not told or rng.random() < 0.5) else told)
    if lesson is None:
        confused = {judgement.taken_for for judgement in seen_by(connection, own) if judgement.cause == card.cause} - {card.cause, ""}
        return mystery.begin_in(connection, own, cause=card.cause, review=True, seed=rng.getrandbits(53), confused_with=confused)
    return insert_attempt(connection, lesson.id, own, kind="review", wording=wording, seed=rng.getrandbits(53))


def _open_mystery(connection: Connection, own: int) -> Mystery | None:
    row = connection.execute(
        select(mysteries.c.token).where(mysteries.c.learner_id == own, mysteries.c.stage == "open", mysteries.c.review.is_(True)).limit(1)
    ).first()
    return None if row is None else mystery.read_mystery(connection, row.token)
