"""Short ways to bring a class where a test wants it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select

from lessons.classroom import Classroom, Participant
from lessons.store import Store
from lessons.store.tables import votes

RIGHT, WRONG, OTHER, FOURTH = "t2", "m4", "q7", "x8"
"""The options of one-busy-gpu."""
LESSONS = ("one-busy-gpu", "saw-tooth")


def new_class(room: Classroom, *, lessons: Sequence[str] = LESSONS, people: int = 0, at: str = "lobby") -> tuple[str, list[Participant]]:
    """A class with participants, brought to a state of its first item."""
    code = room.create(lessons).code
    joined = [room.join(code) for _ in range(people)]
    go_to(room, code, at)
    return code, joined


def go_to(room: Classroom, code: str, state: str) -> None:
    while room.state(code).state != state:
        room.act(code, "next")


def cast(room: Classroom, code: str, person: Participant, choice: str, *, round: str = "first", item_no: int = 1) -> None:
    room.vote(code, person.token, round=round, choice=choice, item_no=item_no)


def cast_all(room: Classroom, code: str, people: Sequence[Participant], choices: Sequence[str], **more: Any) -> None:
    for person, choice in zip(people, choices, strict=True):
        cast(room, code, person, choice, **more)


def stored_votes(store: Store) -> Mapping[tuple[int, int, str], str]:
    """What the database holds, by participant, item and round."""
    with store.read() as connection:
        rows = connection.execute(select(votes)).all()
    found = {(row.participant_id, row.item_no, row.round): row.choice for row in rows}
    assert len(found) == len(rows)
    return found
