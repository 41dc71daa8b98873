"""The live demo of a lesson in front of a class: who is in it, what they voted, in which state it is and what each may see of it.

    classroom = get_classroom()
    code = classroom.create(["one-busy-gpu"]).code
    participant = classroom.join(code)
    classroom.act(code, "next")
    classroom.vote(code, participant.token, round="first", choice="t2", item_no=1)
    classroom.projector_view(code)

Everything is synchronous and thread-safe; an event loop calls it in a thread. Must not know HTTP, presence or runs.
"""

from lessons.classroom.model import (
    ROUNDS,
    STATES,
    ClassFullError,
    ClassState,
    Participant,
    Receipt,
    RemovedError,
    Round,
    StaleClassError,
    State,
    UnknownClassError,
    UnknownParticipantError,
    VoteClosedError,
)
from lessons.classroom.service import Classroom, close_classroom, get_classroom

__all__ = [
    "ROUNDS", "STATES", "ClassFullError", "ClassState", "Classroom", "Participant", "Receipt", "RemovedError", "Round", "StaleClassError",
    "State", "UnknownClassError", "UnknownParticipantError", "VoteClosedError", "close_classroom", "get_classroom",
]
