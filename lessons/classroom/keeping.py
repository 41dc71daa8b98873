"""Classes in the store: the statements, and rows as the shapes of `lessons.classroom.model`.

Owns the four tables of a class. Every function works inside a transaction of the caller's. Must not decide anything but what the database
decides: which of two changes came first.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, delete, func, insert, select, update

from lessons.classroom.model import ClassState, Line, Participant, Place, Tone, Vote
from lessons.learners import hashed, insert_once
from lessons.store.tables import class_log, classes, participants, votes

LOG_LINES = 50
LONGEST_LINE = 500

_COLUMNS = ("code", "title", "lesson_ids", "plan", "state", "item_no", "version", "closes_s", "created_s", "changed_s")
_SCENE = tuple(field.name for field in fields(ClassState) if field.name not in _COLUMNS)

_CLASS = select(classes).where(classes.c.code == bindparam("class_code"))
_PARTICIPANT = select(participants).where(participants.c.code == bindparam("class_code"), participants.c.token_hash == bindparam("hash"))
_NOW = select(
    classes.c.version,
    select(func.coalesce(func.sum(participants.c.changes), 0))
    .where(participants.c.code == bindparam("class_code")).scalar_subquery().label("people"),
    select(func.coalesce(func.sum(votes.c.changes), 0)).where(votes.c.code == bindparam("class_code")).scalar_subquery().label("cast"),
    select(func.count()).where(class_log.c.code == bindparam("class_code")).scalar_subquery().label("lines"),
).where(classes.c.code == bindparam("class_code"))
"""Built once: they are asked at every vote, and building a statement takes longer than SQLite takes to answer it."""

Now = tuple[int, int, int, int]
"""Version, changes of participants and of votes, and lines of the log: two are equal where nothing has happened in between."""


def insert_class(connection: Connection, state: ClassState) -> bool:
    """False where the code is taken."""
    return insert_once(connection, classes, _row(state))


def replace_class(connection: Connection, state: ClassState) -> bool:
    """Keep `state`, which follows the version before it. False where somebody else was first."""
    done = connection.execute(
        update(classes).where(classes.c.code == state.code, classes.c.version == state.version - 1).values(**_row(state))
    )
    return done.rowcount == 1


def read_class(connection: Connection, code: str) -> ClassState | None:
    row = connection.execute(_CLASS, {"class_code": code}).mappings().first()
    return None if row is None else _class_state(row)


def read_classes(connection: Connection) -> list[ClassState]:
    """All of them, latest first."""
    rows = connection.execute(select(classes).order_by(classes.c.created_s.desc(), classes.c.code)).mappings()
    return [_class_state(row) for row in rows]


def delete_class(connection: Connection, code: str) -> bool:
    """With everything of it. By table: rows of a class know one another only where the database was told to."""
    for table in (votes, class_log, participants):
        connection.execute(delete(table).where(table.c.code == code))
    return connection.execute(delete(classes).where(classes.c.code == code)).rowcount == 1


def read_now(connection: Connection, code: str) -> Now | None:
    row = connection.execute(_NOW, {"class_code": code}).first()
    return None if row is None else (row.version, int(row.people), int(row.cast), row.lines)


def find_participant(connection: Connection, code: str, token: str) -> Participant | None:
    row = connection.execute(_PARTICIPANT, {"class_code": code, "hash": hashed(token)}).mappings().first()
    return None if row is None else _participant(row)


def insert_participant(connection: Connection, code: str, token: str, nickname: str | None, now_s: float) -> Participant:
    """Unless they are there already, from another tab."""
    insert_once(connection, participants, {
        "code": code, "token_hash": hashed(token), "nickname": nickname, "hidden": False, "removed": False, "changes": 1, "joined_s": now_s,
    })
    found = find_participant(connection, code, token)
    assert found is not None
    return found


def change_participant(connection: Connection, code: str, participant_id: int, **values: Any) -> Participant | None:
    own = (participants.c.code == code, participants.c.id == participant_id)
    connection.execute(update(participants).where(*own).values(**values, changes=participants.c.changes + 1))
    row = connection.execute(select(participants).where(*own)).mappings().first()
    return None if row is None else _participant(row)


def read_participants(connection: Connection, code: str) -> dict[str, Participant]:
    """By the hash of their token, in the order in which they came."""
    rows = connection.execute(select(participants).where(participants.c.code == code).order_by(participants.c.id)).mappings()
    return {row["token_hash"]: _participant(row) for row in rows}


def count_participants(connection: Connection, code: str) -> int:
    return connection.execute(select(func.count()).where(participants.c.code == code)).scalar_one()


def read_votes(connection: Connection, code: str) -> list[Vote]:
    rows = connection.execute(select(votes).where(votes.c.code == code)).mappings()
    return [Vote(**{name: row[name] for name in _VOTE}) for row in rows]


def insert_line(connection: Connection, code: str, words: str, tone: Tone, now_s: float) -> Line:
    values = {"at_s": now_s, "words": words[:LONGEST_LINE], "tone": tone}
    number = connection.execute(insert(class_log).values(code=code, **values).returning(class_log.c.id)).scalar_one()
    return Line(id=number, at_s=now_s, words=words[:LONGEST_LINE], tone=tone)


def read_log(connection: Connection, code: str) -> tuple[list[Line], int]:
    """The latest lines, oldest first; and how many there are up to the latest one."""
    latest = select(class_log).where(class_log.c.code == code).order_by(class_log.c.id.desc()).limit(LOG_LINES)
    rows = connection.execute(latest).mappings().all()
    lines = [Line(id=row["id"], at_s=row["at_s"], words=row["words"], tone=row["tone"]) for row in reversed(rows)]
    until = class_log.c.id <= (lines[-1].id if lines else 0)
    return lines, connection.execute(select(func.count()).where(class_log.c.code == code, until)).scalar_one()


_VOTE = tuple(field.name for field in fields(Vote))


def _row(state: ClassState) -> dict[str, Any]:
    values = {name: getattr(state, name) for name in _COLUMNS}
    scene = {name: getattr(state, name) for name in _SCENE}
    scene["trail"] = [[place.item_no, place.state] for place in state.trail]
    return {**values, "lesson_ids": list(state.lesson_ids), "plan": list(state.plan), "scene": scene}


def _class_state(row: RowMapping) -> ClassState:
    scene = {name: value for name, value in row["scene"].items() if name in _SCENE}
    for name in ("keys_seen", "race"):
        scene[name] = tuple(scene.get(name, ()))
    scene["trail"] = tuple(Place(item_no=item_no, state=state) for item_no, state in scene.get("trail", ()))
    values = {name: row[name] for name in _COLUMNS}
    return ClassState(**{**values, "lesson_ids": tuple(row["lesson_ids"]), "plan": tuple(row["plan"])}, **scene)


def _participant(row: RowMapping) -> Participant:
    return Participant(
        id=row["id"], code=row["code"], nickname=row["nickname"], hidden=row["hidden"], removed=row["removed"],
        changes=row["changes"], joined_s=row["joined_s"],
    )
