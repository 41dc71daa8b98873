"""A class from its lobby to its end, on both databases: what it says at each state, and that a restart reads the same back."""

from __future__ import annotations

from lessons.classroom import Classroom
from lessons.store import Store


def test_a_whole_class_and_a_restart(database: Store) -> None:
    room = Classroom(database)
    code = room.create(["one-busy-gpu", "saw-tooth"]).code
    ada, other = room.join(code, nickname="Ada"), room.join(code)
    assert room.join(code, ada.token).id == ada.id
    room.act(code, "next")
    for token, choice in ((ada.token, "t2"), (other.token, "m4"), (other.token, "t2")):
        room.vote(code, token, round="first", choice=choice, item_no=1)
    states = []
    while (view := room.console_view(code))["next"] is not None:
        states.append((view["item"]["no"], view["state"]))
        room.act(code, "next", expect_version=view["version"])
    states_of_one = ["vote", "votes", "discuss", "revote", "predict", "experiments", "key", "explanation"]
    assert states == [(number, state) for number in (1, 2) for state in states_of_one]
    assert room.projector_view(code)["state"] == "ended"
    assert Classroom(database).state(code) == room.state(code)
