"""Who takes part in a class, inside a transaction: joining it, being renamed, hidden or removed.

Owns the rules of it. Must not look at votes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from lessons.classroom.doing import Done, whole
from lessons.classroom.keeping import change_participant, count_participants, find_participant, insert_participant
from lessons.classroom.model import ClassFullError, ClassState, Participant, RemovedError

LARGEST_ID = 2**31 - 1
"""That a database can have given."""

PEOPLE_ACTIONS: Mapping[str, tuple[Mapping[str, bool], str]] = {
    "hide": ({"hidden": True}, "is hidden"), "unhide": ({"hidden": False}, "is shown again"),
    "remove": ({"removed": True}, "was removed"), "restore": ({"removed": False}, "was let in again"),
}
"""Actions on a participant: what they change, and the words for the log."""


def join(connection: Connection, code: str, token: str, nickname: str | None, *, rename: bool, limit: int, now_s: float) -> Participant:
    """The participant of this token, made where there is none. Raises ClassFullError, RemovedError."""
    known = find_participant(connection, code, token)
    if known is None:
        if count_participants(connection, code) >= limit:
            raise ClassFullError(limit)
        known = insert_participant(connection, code, token, nickname, now_s)
    if known.removed:
        raise RemovedError
    if rename and known.nickname != nickname:
        known = change_participant(connection, code, known.id, nickname=nickname) or known
    return known


def moderate(
    connection: Connection, before: ClassState, action: str, arguments: Mapping[str, Any], *, now_s: float
) -> tuple[Done, Participant]:
    """One of `PEOPLE_ACTIONS` on `participant`, the id of the console's list. Raises ValueError."""
    if set(arguments) != {"participant"}:
        raise ValueError("participant: must be the number of somebody in this class, and nothing else")
    participant = whole("participant", arguments["participant"], 1, LARGEST_ID)
    change, words = PEOPLE_ACTIONS[action]
    person = change_participant(connection, before.code, participant, **change)
    if person is None:
        raise ValueError(f"participant={participant}: must be the number of somebody in this class")
    state = replace(before, version=before.version + 1, changed_s=now_s)
    return Done(state=state, words=f"{person.nickname or 'Somebody without a name'} {words}."), person
