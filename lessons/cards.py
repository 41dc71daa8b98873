"""When a cause comes back: one card per learner and cause, scheduled by FSRS after every first answer to that cause.

    wrong, or told instead -> Again     right as a guess -> Hard     right, fairly sure or certain -> Good

Never Easy: among four options a lucky answer may be a certain one too. Intervals are whole days from the start, since the course is a
matter of days. Owns the table `cards` and the scheduler's settings; which form a card is asked in belongs to `lessons.reviews`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from fsrs import Card as FsrsCard
from fsrs import Rating, Scheduler
from fsrs.card import CardDict
from sqlalchemy import Connection, insert, select, update

from lessons.judgements import Judgement
from lessons.store.tables import cards as table

MYSTERY = "mystery"
"""The form of a card that was asked as a mystery run."""

SCHEDULER = Scheduler(learning_steps=(), relearning_steps=(), enable_fuzzing=False, maximum_interval=365)
"""Without fuzzing: the same answers at the same times give the same dates."""

CLOCK_OFF_S = 86_400.0
"""How far in the future an answer may lie before its date is taken for that of a wrong clock."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is known about a learner and a cause."""

    cause: str
    due_s: float
    last_form: str
    """How it was asked last: `mystery`, or `LESSON:WORDING` (see `wording_form`)."""
    asked_s: float
    """When it was asked last."""

    def is_due(self, now_s: float) -> bool:
        """Asked tomorrow or later: the clock of the server was wrong then, and so is the date on the card."""
        return self.due_s <= now_s or self.asked_s > now_s + CLOCK_OFF_S


def wording_form(lesson_id: str, wording: int | None) -> str:
    """The name of one telling of a lesson's symptom; None is the lesson's own."""
    return f"{lesson_id}:{'own' if wording is None else wording}"


def rating_of(judgement: Judgement) -> Rating:
    if not judgement.correct:
        return Rating.Again
    return Rating.Hard if judgement.certainty in (None, "guess") else Rating.Good


def schedule(connection: Connection, learner_id: int, judgement: Judgement, form: str) -> None:
    """Take in a first answer, in the transaction in which its verdict is seen: makes the card, or moves its date."""
    mine = (table.c.learner_id == learner_id, table.c.cause == judgement.cause)
    known = connection.execute(select(table.c.card).where(*mine)).first()
    card = FsrsCard(card_id=1) if known is None else FsrsCard.from_dict(cast(CardDict, known.card))
    at = datetime.fromtimestamp(judgement.at_s, UTC)
    if card.last_review is not None and at < card.last_review:  # the clock of the server was set back
        card.last_review = at  # else the next date would follow from the wrong one, for ever
    card, _ = SCHEDULER.review_card(card, rating_of(judgement), at)
    values = {"card": card.to_dict(), "due_s": card.due.timestamp(), "last_form": form, "asked_s": judgement.at_s}
    if known is None:
        connection.execute(insert(table).values(learner_id=learner_id, cause=judgement.cause, **values))
    else:
        connection.execute(update(table).where(*mine).values(**values))


def cards_of(connection: Connection, learner_id: int) -> list[Card]:
    """All cards of a learner, the one that is due first (or has been due longest) first."""
    rows = connection.execute(select(table).where(table.c.learner_id == learner_id).order_by(table.c.due_s, table.c.cause))
    return [Card(cause=row.cause, due_s=row.due_s, last_form=row.last_form, asked_s=row.asked_s) for row in rows]
