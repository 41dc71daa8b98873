"""What learners answered, judged: one row per answer, written in the answer's own transaction, counted once its verdict was seen.

Before that a row must not show in any figure: marks that rise while a learner still predicts would tell the verdict. Owns the table
`judgements`; what follows from it (mastery, confusions, progress) is computed elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, bindparam, case, insert, select, update

from lessons.grading import Certainty
from lessons.store.tables import attempts
from lessons.store.tables import judgements as table

JudgedKind = Literal["lesson", "review", "mystery"]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """One answer of a learner to: what is wrong here?"""

    at_s: float
    kind: JudgedKind
    ref: str
    """Token of the attempt or mystery run."""
    try_no: int
    lesson_id: str | None
    """None for a mystery run."""
    cause: str
    """What was wrong, a key of `lessons.causes`."""
    taken_for: str
    """What the learner named; empty where that is no cause, or where the learner asked to be told."""
    correct: bool
    certainty: Certainty | None
    marks: float
    figure: str | None = None
    """Mystery runs: the figure that told the learner."""
    figure_told: bool | None = None
    """Whether that figure can tell this cause."""


def write(connection: Connection, learner_id: int, judgement: Judgement, *, seen: bool) -> None:
    """In the transaction of the answer itself."""
    connection.execute(insert(table).values(learner_id=learner_id, seen=seen, **vars(judgement)))


def see(connection: Connection, ref: str, *, forfeit: bool = False) -> list[Judgement]:
    """The verdicts of this attempt are seen; returns those that were not before.

    `forfeit`: its answer was asked for instead. Then a right answer earns nothing, and what a wrong one cost stays lost: who has watched
    the run knows what is coming.
    """
    rows = connection.execute(select(table).where(table.c.ref == ref, table.c.seen.is_(False))).all()
    if rows:
        marks = {"marks": case((table.c.marks > 0, 0.0), else_=table.c.marks)} if forfeit else {}
        connection.execute(update(table).where(table.c.ref == ref, table.c.seen.is_(False)).values(seen=True, **marks))
    return [_judgement(row) for row in rows]


def untold(connection: Connection, learner_id: int) -> frozenset[str]:
    """Tokens of the learner's attempts whose cause is not told yet: after a wrong first answer there may be a second try.

    A judgement of theirs may be counted, and never named.
    """
    mine = select(attempts.c.token).where(attempts.c.learner_id == learner_id, attempts.c.stage != "explained")
    return frozenset(connection.execute(mine).scalars())


def seen_by(connection: Connection, learner_id: int) -> list[Judgement]:
    """Every judgement whose verdict the learner has seen, oldest first."""
    rows: Iterable[Row[Any]] = connection.execute(
        select(table).where(table.c.learner_id == learner_id, table.c.seen.is_(True)).order_by(table.c.at_s, table.c.id)
    )
    return [_judgement(row) for row in rows]




_FIRST = select(table.c.lesson_id).where(table.c.learner_id == bindparam("own")).order_by(table.c.id).limit(1)


def may_cost(connection: Connection, learner_id: int, lesson_id: str | None) -> bool:
    """Whether a wrong answer costs marks here: everywhere but in the lesson (or the mystery runs) of the learner's very first answer."""
    first = connection.execute(_FIRST, {"own": learner_id}).first()
    return first is not None and first.lesson_id != lesson_id


_FIELDS = tuple(Judgement.__dataclass_fields__)


def _judgement(row: Row[Any]) -> Judgement:
    return Judgement(**{name: row._mapping[name] for name in _FIELDS})
