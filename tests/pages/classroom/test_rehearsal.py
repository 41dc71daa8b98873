"""Simulated participants: they come, vote once per round, change their minds after talking, put up with faults, and leave."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pages.classroom import rehearsal as module
from pages.classroom.habits import Lean
from pages.classroom.rehearsal import Rehearsal
from tests.pages.classroom.made_class import CODE, OPTIONS, MadeClass, served, voting, wait_until

LEAN = Lean(right={1: "t3"}, draws={1: "only0"})


@pytest.fixture
def made() -> Iterator[MadeClass]:
    with served(MadeClass()) as one:
        yield one


@pytest.fixture
def send(made: MadeClass) -> Iterator[object]:
    sent: list[Rehearsal] = []

    def some(count: int = 8) -> Rehearsal:
        sent.append(Rehearsal(made.url, CODE, lean=LEAN, count=count, seed=3, hurry=40.0))
        return sent[-1]

    yield some
    for each in sent:
        each.stop()


def test_they_join_vote_talk_vote_again_predict_and_leave(made: MadeClass, send) -> None:
    made.ticks = 2
    room = send()
    wait_until(lambda: made.open_streams == 8)
    assert sorted(made.nicknames) == [f"Simulated {number:02}" for number in range(1, 9)]
    for voted in ("first", "second", "predict"):
        made.say(voting(1, voted))
        wait_until(lambda voted=voted: sum(of == voted for _, of in made.votes) == 8)
    assert all(choice in OPTIONS for (_, of), choices in made.votes.items() for choice in choices if of != "predict")
    people = {cookie for cookie, _ in made.votes}
    first, second = ([made.votes[cookie, of][-1] for cookie in sorted(people)] for of in ("first", "second"))
    assert first != second
    assert second.count("t3") > first.count("t3")
    assert {choice for cookie in people for choice in made.votes[cookie, "predict"]} <= {"only0", "all_high"}
    wait_until(lambda: room.tally.votes >= 24)
    tally = room.tally
    assert (tally.wanted, tally.joined, tally.following, tally.pictures, tally.faults) == (8, 8, 8, 16, 0)
    assert tally.slowest_ms is not None
    wait_until(lambda: sum(made.signs.values()) == 8)  # each has said that it is there
    room.stop()
    wait_until(lambda: made.open_streams == 0)
    assert not room.running
    assert room.tally.following == 0


def test_the_same_round_is_not_answered_again(made: MadeClass, send) -> None:
    made.say(voting(1, "first"))
    room = send(3)
    wait_until(lambda: len(made.votes) == 3)
    made.say({**voting(1, "first"), "version": 2})
    made.say({**voting(2, "first"), "version": 3})
    wait_until(lambda: room.tally.votes >= 6)
    assert all(len(choices) <= 4 for choices in made.votes.values()), "once per item, and once more for the undecided"


def test_who_may_not_vote_does_not(made: MadeClass, send) -> None:
    made.say({**voting(1, "first"), "may_vote": False})
    send(3)
    wait_until(lambda: made.open_streams == 3)
    made.say({**voting(2, "first")})
    wait_until(lambda: len(made.votes) == 3)
    assert all(len(choices) <= 2 for choices in made.votes.values())


def test_a_busy_server_is_asked_again_and_a_closed_vote_is_not(made: MadeClass, send, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNDECIDED", 0.0)
    made.answers = [503, 409]
    made.say(voting(1, "first"))
    room = send(3)
    wait_until(lambda: room.tally.votes == 2)
    assert (room.tally.refused, room.tally.faults, len(made.votes)) == (1, 1, 2)
    assert "503" in room.tally.fault


def test_a_class_that_ends_lets_them_go(made: MadeClass, send) -> None:
    room = send(3)
    wait_until(lambda: made.open_streams == 3)
    made.say({"state": "ended"})
    wait_until(lambda: not room.running)


def test_a_class_that_is_not_there(made: MadeClass, send) -> None:
    made.joining = 404
    room = send(2)
    wait_until(lambda: not room.running)
    assert (room.tally.joined, room.tally.fault) == (0, "joining was answered with 404 no")


def test_an_address_that_nobody_answers_is_a_fault_and_no_crash() -> None:
    room = Rehearsal("http://127.0.0.1:9", CODE, count=2, hurry=200.0)
    wait_until(lambda: room.tally.faults >= 2)
    room.stop()
    assert not room.running
    assert room.tally.fault


def test_one_rehearsal_per_class(made: MadeClass) -> None:
    first = module.begin(made.url, CODE)
    assert module.begin(made.url, CODE) is first
    assert module.rehearsal_of(CODE) is first
    module.end_all()
    assert module.rehearsal_of(CODE) is None
    assert not first.running


def test_only_the_web_is_an_address() -> None:
    with pytest.raises(ValueError, match="base='file:///etc/passwd'"):
        module.Phone("file:///etc/passwd")
