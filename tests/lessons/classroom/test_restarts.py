"""A class survives its server: killed in the middle of votes, started again, and several of them on one database."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import delete, update

from lessons.classroom import Classroom, UnknownClassError, UnknownParticipantError, close_classroom, get_classroom
from lessons.classroom.copies import KEPT
from lessons.classroom.words import new_token
from lessons.learning import close_learning
from lessons.store import Store, StoreError
from lessons.store.tables import classes, votes
from tests.lessons.classroom.playing import OTHER, RIGHT, WRONG, cast, cast_all, go_to, new_class, stored_votes

ROOT = Path(__file__).resolve().parents[3]
ACKNOWLEDGED = 60


def fresh(room: Classroom, code: str) -> Classroom:
    """`room`, with the half second over after which it looks at the store again."""
    room._copies.of(code, look=False).look_s = 0.0
    return room


def test_killed_in_the_middle_of_a_vote(room: Classroom, again: Callable[[], Classroom], database: Store, tmp_path: Path) -> None:
    code, people = new_class(room, people=40, at="vote")
    url = database._engine.url.render_as_string(hide_password=False) if database.dialect == "postgresql" else ""
    command = [sys.executable, "-m", "tests.lessons.classroom.voting", str(tmp_path), url.replace("postgresql+psycopg", "postgresql"), code]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as server:  # type: ignore[call-overload]
        server.stdin.write("\n".join(person.token for person in people))
        server.stdin.close()
        told = [server.stdout.readline() for _ in range(ACKNOWLEDGED)]
        time.sleep(random.uniform(0, 0.02))
        server.kill()
        told += server.stdout.readlines()
    last = dict(line.split() for line in told if line.endswith("\n"))
    assert len(told) >= ACKNOWLEDGED
    after = again()
    stored = {person: choice for (person, _, _), choice in stored_votes(database).items()}
    later = 0
    for person in people:
        kept, view = stored.get(person.id), after.audience_view(code, person.token)
        assert view["me"]["votes"]["first"] == kept
        later += kept != last.get(person.token)
    assert later <= 4, "at most what each thread was about to acknowledge"
    assert after.projector_view(code)["answered"] == len(stored)
    assert (view["state"], view["may_vote"]) == ("vote", True)
    cast_all(after, code, people, [RIGHT] * 40)
    after.act(code, "next")
    assert after.projector_view(code)["votes"]["first"] == {"total": 40, "counts": {RIGHT: 40}}


def test_replicas_on_one_database_see_what_the_others_do(room: Classroom, again: Callable[[], Classroom]) -> None:
    code, people = new_class(room, people=2, at="vote")
    other = again()
    assert other.state(code) == room.state(code)
    cast(room, code, people[0], RIGHT)
    cast(other, code, people[1], WRONG)
    late = other.join(code, nickname="Late")
    for door in (room, other):
        view = fresh(door, code).console_view(code)
        assert (view["answered"], view["joined"]) == (2, 3)
    cast(room, code, late, WRONG)
    cast(other, code, late, OTHER)
    assert fresh(room, code).audience_view(code, late.token)["me"]["votes"]["first"] == OTHER
    room.act(code, "remove", participant=late.id)
    other.act(code, "next")
    for door in (room, other):
        view = fresh(door, code).console_view(code)
        assert (view["state"], view["shares"]["n"]) == ("votes", 2)


def test_who_joined_at_one_replica_is_known_at_the_other_at_once(room: Classroom, again: Callable[[], Classroom]) -> None:
    """A proxy may send the next request of a phone anywhere."""
    code, _ = new_class(room, people=1, at="vote")
    other = again()
    assert other.joined(code) == 1
    late = room.join(code, nickname="Late")
    assert other.audience_me(code, late.token)["nickname"] == "Late"
    later = room.join(code)
    cast(other, code, later, RIGHT)
    assert other.audience_me(code, later.token)["votes"]["first"] == RIGHT
    with pytest.raises(UnknownParticipantError):
        other.audience_me(code, new_token())


def test_no_line_of_the_log_is_missed_between_two_of_ones_own(room: Classroom, again: Callable[[], Classroom]) -> None:
    code, _ = new_class(room)
    other = again()
    assert len(other.console_view(code)["log"]) == 1
    for door, words in ((room, "one"), (other, "two"), (room, "three")):
        door.note(code, words)
    for door in (room, other, again()):
        assert [line["words"] for line in fresh(door, code).console_view(code)["log"]] == ["The class was made.", "one", "two", "three"]
    for number in range(60):
        other.note(code, str(number))
    for door in (room, other):
        assert [line["words"] for line in fresh(door, code).console_view(code)["log"]] == [str(number) for number in range(10, 60)]
        stamp = door.stamp(code)
        assert fresh(door, code).stamp(code) == stamp, "and all is known then"


def test_a_change_elsewhere_is_noticed_without_being_asked_for(room: Classroom, again: Callable[[], Classroom]) -> None:
    code, people = new_class(room, people=1, at="vote")
    other, told = again(), []
    end = room.subscribe(told.append)
    stamp = room.stamp(code)
    assert fresh(room, code).stamp(code) == stamp
    assert told == [], "nothing has happened"
    other.join(code)
    assert fresh(room, code).stamp(code) != stamp
    assert told == [code]
    cast(room, code, people[0], RIGHT)
    room.act(code, "next")
    assert told == [code] * 3
    end()
    end()
    room.act(code, "next")
    assert told == [code] * 3


def test_of_two_changes_the_newer_one_stays_in_any_order(room: Classroom) -> None:
    code, people = new_class(room, people=1, at="vote")
    before, person = room.state(code), next(iter(room._copies.of(code).people.items()))
    cast(room, code, people[0], RIGHT)
    live = room._copies.of(code)
    vote = live.votes[1, "first"][people[0].id]
    cast(room, code, people[0], WRONG)
    room.join(code, people[0].token, "Ada")
    room.act(code, "next")
    now, stamp = live.now, live.stamp
    live.set_state(before)
    live.set_person(*person)
    live.set_vote(vote)
    assert (live.now, live.stamp) == (now, stamp)
    assert room.audience_view(code, people[0].token)["me"] == {
        "nickname": "Ada", "votes": {"first": WRONG, "second": None, "predict": None}
    }


def test_a_listener_that_fails_harms_nobody(room: Classroom) -> None:
    code, people = new_class(room, people=1, at="vote")
    told: list[str] = []
    room.subscribe(lambda code: 1 // 0)  # type: ignore[arg-type,return-value]
    room.subscribe(told.append)
    cast(room, code, people[0], RIGHT)
    assert told == [code]


def test_what_this_process_does_itself_needs_no_second_reading(room: Classroom, monkeypatch: pytest.MonkeyPatch) -> None:
    code, people = new_class(room, people=3, at="vote")
    monkeypatch.setattr(room._copies, "_read", lambda *_: pytest.fail("the class was read again"))
    cast_all(room, code, people, [RIGHT, WRONG, RIGHT])
    cast(room, code, people[0], WRONG)
    room.join(code, people[0].token, "Ada")
    room.act(code, "hide", participant=people[0].id)
    room.note(code, "x")
    go_to(room, code, "votes")
    assert fresh(room, code).console_view(code)["answered"] == 0


def test_a_store_that_was_taken_back_is_believed(room: Classroom, database: Store) -> None:
    """As by a backup: what this process remembers of later is gone."""
    code, people = new_class(room, people=2, at="votes")
    with database.write() as connection:
        connection.execute(update(classes).where(classes.c.code == code).values(state="vote", version=2))
    assert fresh(room, code).state(code).state == "vote"
    cast_all(room, code, people, [RIGHT, WRONG])
    with database.write() as connection:
        connection.execute(delete(votes))
    assert fresh(room, code).projector_view(code)["answered"] == 0


def test_a_class_that_another_server_deleted_is_unknown(room: Classroom, again: Callable[[], Classroom]) -> None:
    code, _ = new_class(room)
    assert again().delete(code)
    with pytest.raises(UnknownClassError):
        fresh(room, code).state(code)


def test_classes_that_nobody_looks_at_are_read_again_when_somebody_does(room: Classroom) -> None:
    first, people = new_class(room, people=1, at="vote")
    cast(room, first, people[0], RIGHT)
    seen = room.stamp(first)
    for code in [room.create(["saw-tooth"]).code for _ in range(KEPT)]:
        room.state(code)
    assert len(room._copies._live) == KEPT
    assert first not in room._copies._live
    assert room.audience_view(first, people[0].token)["me"]["votes"]["first"] == RIGHT
    assert room.stamp(first) != seen


def test_a_store_that_cannot_be_read_is_left_alone_for_a_moment(room: Classroom, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _ = new_class(room)
    asked: list[None] = []

    def away() -> None:
        asked.append(None)
        raise StoreError("away")

    monkeypatch.setattr(room.store, "read", away)
    fresh(room, code)
    assert [room.state(code).state for _ in range(50)] == ["lobby"] * 50
    assert len(asked) == 1


def test_the_classroom_of_a_process_is_on_the_store_of_its_learners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDLAB_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("SHARDLAB_DATABASE_URL", raising=False)
    close_learning()
    try:
        room = get_classroom()
        code = room.create(["saw-tooth"]).code
        assert get_classroom() is room
        close_classroom()
        assert get_classroom() is not room
        close_learning()
        assert get_classroom().state(code).code == code, "also after the store was opened again"
    finally:
        close_classroom()
        close_learning()
