"""Casting one vote inside a transaction: is it open, whose is it, is it new.

Owns what a vote needs to be recorded. It is short, because a room casts three hundred at once and the store takes one after the other.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects import postgresql, sqlite

from lessons.classroom.model import STATE_WORDS, RemovedError, Round, UnknownParticipantError, Vote, VoteClosedError
from lessons.classroom.states import VOTING
from lessons.classroom.turns import together
from lessons.learners import hashed
from lessons.store.tables import classes, participants, votes

GRACE_S = 2.0
"""A vote that was sent in the last second is still on its way when the timer has run out."""

_OWN = (votes.c.participant_id == participants.c.id) & (votes.c.item_no == bindparam("item")) & (votes.c.round == bindparam("vote_round"))
_STANDING = (
    select(
        classes.c.version, classes.c.state, classes.c.item_no, classes.c.closes_s,
        participants.c.id, participants.c.removed, votes.c.choice, votes.c.changes, votes.c.first_s, votes.c.at_s,
    )
    .select_from(classes.join(participants, participants.c.code == classes.c.code).outerjoin(votes, _OWN))
    .where(classes.c.code == bindparam("class_code"), participants.c.token_hash == bindparam("hash"))
)
_NAMES = ("participant_id", "item_no", "round", "code", "choice", "changes", "first_s", "at_s")


def _upsert(insert: Any) -> Any:
    new = insert(votes).values(**{name: bindparam(f"new_{name}") for name in _NAMES})
    return new.on_conflict_do_update(
        index_elements=["participant_id", "item_no", "round"],
        set_={"choice": new.excluded.choice, "at_s": new.excluded.at_s, "changes": votes.c.changes + 1},
    ).returning(votes.c.changes, votes.c.first_s)


_UPSERT = {"sqlite": _upsert(sqlite.insert), "postgresql": _upsert(postgresql.insert)}
"""Built once: building a statement takes longer than SQLite takes to answer it."""


def cast(connection: Connection, code: str, token: str, *, round: Round, choice: str, item_no: int, now_s: float) -> tuple[Vote, int]:
    """The vote as it now stands, and the version of the class. One that was cast already is acknowledged again, also after the end.

    Raises UnknownParticipantError, RemovedError, VoteClosedError.
    """
    together(connection, code)
    key = {"class_code": code, "hash": hashed(token), "item": item_no, "vote_round": round}
    found = connection.execute(_STANDING, key).first()
    if found is None:
        raise UnknownParticipantError
    if found.removed:
        raise RemovedError
    if found.choice == choice:
        changes, first_s, at_s = found.changes, found.first_s, found.at_s
    else:
        closed = why_closed(found.state, found.item_no, found.closes_s, round=round, item_no=item_no, now_s=now_s)
        if closed:
            raise VoteClosedError(closed)
        values = (found.id, item_no, round, code, choice, 1, now_s, now_s)
        row = connection.execute(
            _UPSERT[connection.dialect.name], {f"new_{name}": value for name, value in zip(_NAMES, values, strict=True)}
        ).one()
        changes, first_s, at_s = row.changes, row.first_s, now_s
    vote = Vote(participant_id=found.id, item_no=item_no, round=round, choice=choice, changes=changes, first_s=first_s, at_s=at_s)
    return vote, found.version


def why_closed(state: str, now_at: int, closes_s: float | None, *, round: Round, item_no: int, now_s: float) -> str:
    """For the voter; empty where this vote is open."""
    if item_no != now_at:
        return "The class has moved on to another question."
    if next((open_round for voting, open_round in VOTING.items() if voting == state), None) != round:
        words = next((words for known, words in STATE_WORDS.items() if known == state), state)
        return f"This vote is not open now (the class is at: {words.lower()})."
    if closes_s is not None and now_s > closes_s + GRACE_S:
        return "Time is up for this vote."
    return ""
