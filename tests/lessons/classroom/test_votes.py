"""Votes: recorded once, replaced until the vote closes, acknowledged only when they are on the disk, and everybody's own."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from lessons.classroom import Classroom, RemovedError, UnknownClassError, UnknownParticipantError, VoteClosedError, casting, copies, turns
from lessons.classroom.words import new_token
from lessons.model import SILHOUETTES
from lessons.store import Store, StoreError, open_store
from lessons.store.engine import CONNECTIONS
from tests.lessons.classroom.conftest import Clock
from tests.lessons.classroom.playing import FOURTH, OTHER, RIGHT, WRONG, cast, go_to, new_class, stored_votes
from tests.postgres import Cluster

CHOICES = (RIGHT, WRONG, OTHER, FOURTH)


def test_a_vote_is_replaced_until_it_closes(room: Classroom, database: Store) -> None:
    code, (ada,) = new_class(room, people=1, at="vote")
    for choice in (WRONG, OTHER, RIGHT):
        receipt = room.vote(code, ada.token, round="first", choice=choice, item_no=1)
        assert (receipt.choice, receipt.round, receipt.item_no, receipt.version) == (choice, "first", 1, room.state(code).version)
    assert stored_votes(database) == {(ada.id, 1, "first"): RIGHT}
    assert room.audience_view(code, ada.token)["me"]["votes"] == {"first": RIGHT, "second": None, "predict": None}
    room.act(code, "next")
    with pytest.raises(VoteClosedError, match="not open now"):
        room.vote(code, ada.token, round="first", choice=WRONG, item_no=1)
    assert stored_votes(database) == {(ada.id, 1, "first"): RIGHT}


def test_an_equal_vote_is_acknowledged_again_also_after_the_end(room: Classroom, database: Store, clock: Clock) -> None:
    """A phone that never heard of its acknowledgement sends again when it is back."""
    code, (ada,) = new_class(room, people=1, at="vote")
    first = room.vote(code, ada.token, round="first", choice=WRONG, item_no=1)
    clock.now_s += 100
    assert room.vote(code, ada.token, round="first", choice=WRONG, item_no=1).at_s == first.at_s
    go_to(room, code, "key")
    stamp = room.stamp(code)
    assert room.vote(code, ada.token, round="first", choice=WRONG, item_no=1).at_s == first.at_s
    assert room.stamp(code) == stamp, "and nobody's picture is drawn again"
    assert stored_votes(database) == {(ada.id, 1, "first"): WRONG}


def test_each_round_is_open_in_its_state_only(room: Classroom, database: Store) -> None:
    code, (ada,) = new_class(room, people=1)
    cast_in = []
    while room.state(code).state != "ended":
        state, item_no = room.state(code).state, room.state(code).item_no
        for round, choice in (("first", RIGHT), ("second", WRONG), ("predict", "only0")):
            if item_no == 2 and round != "predict":
                choice = room.console_view(code)["item"]["options"][0]["id"]
            for item in (1, 2):
                known = [option.id for option in room._lessons().get(("one-busy-gpu", "saw-tooth")[item - 1]).options]
                sent = choice if choice in known or round == "predict" else known[0]
                before = stored_votes(database)
                try:
                    room.vote(code, ada.token, round=round, choice=sent, item_no=item)
                except VoteClosedError:
                    assert stored_votes(database) == before
                else:
                    if stored_votes(database) != before:
                        cast_in.append((state, item_no, round, item))
        room.act(code, "next")
    rounds = (("vote", "first"), ("revote", "second"), ("predict", "predict"))
    assert cast_in == [(state, number, round, number) for number in (1, 2) for state, round in rounds]


def test_time_is_up_a_little_after_the_timer_says_so(room: Classroom, clock: Clock) -> None:
    code, (ada,) = new_class(room, people=1, at="vote")
    room.act(code, "timer", seconds=30)
    before = room.stamp(code)
    clock.now_s += 31
    assert room.stamp(code) != before, "the screens are told"
    assert not room.audience_view(code, ada.token)["may_vote"]
    cast(room, code, ada, RIGHT)
    clock.now_s += 2
    with pytest.raises(VoteClosedError, match="Time is up"):
        cast(room, code, ada, WRONG)
    room.act(code, "extend", seconds=10)
    cast(room, code, ada, WRONG)


def test_what_cannot_be_chosen_is_refused(room: Classroom, database: Store) -> None:
    code, (ada,) = new_class(room, people=1, at="vote")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"round": "third"}, "round='third': must be one of first, second, predict"), ({"choice": "zz"}, "choice='zz': must be one of m4"),
        ({"choice": "only0"}, "must be one of m4"), ({"round": "predict"}, "must be one of only0"), ({"item_no": 9}, "no item 9"),
        ({"item_no": 0}, "no item 0"), ({"item_no": "1"}, "no item 1"), ({"choice": None}, "choice='None'"),
        ({"choice": "x" * 10_000}, "choice='x{40}'"), ({"round": ["first"]}, "round="),
    ]
    for arguments, said in cases:
        with pytest.raises(ValueError, match=said):
            room.vote(code, ada.token, **{"round": "first", "choice": RIGHT, "item_no": 1, **arguments})
    assert stored_votes(database) == {}


def test_nobody_votes_with_a_token_that_is_not_in_the_class(room: Classroom, database: Store) -> None:
    code, (ada,) = new_class(room, people=1, at="vote")
    _, (bob,) = new_class(room, people=1, at="vote")
    for token in (bob.token, new_token(), ada.token[:-1], ada.token + "A", "", str(ada.id), "x" * 10_000, f"{ada.token}'--"):
        with pytest.raises(UnknownParticipantError):
            room.vote(code, token, round="first", choice=RIGHT, item_no=1)
    assert stored_votes(database) == {}


def test_votes_of_somebody_who_was_removed_do_not_count_any_more(room: Classroom, database: Store) -> None:
    code, (ada, bob) = new_class(room, people=2, at="vote")
    cast(room, code, ada, RIGHT)
    cast(room, code, bob, WRONG)
    room.act(code, "remove", participant=bob.id)
    for choice in (WRONG, RIGHT):
        with pytest.raises(RemovedError, match="has removed you"):
            cast(room, code, bob, choice)
    assert room.projector_view(code)["answered"] == 1
    room.act(code, "restore", participant=bob.id)
    assert room.projector_view(code)["answered"] == 2, "nothing was lost, should it have been a mistake"


@pytest.mark.timeout(240)
def test_three_hundred_who_vote_at_once_are_each_counted_once(room: Classroom, again: Callable[[], Classroom], database: Store) -> None:
    code, people = new_class(room, people=300, at="vote")
    doors = (room, again())
    random.seed(6)
    last = [random.choice(CHOICES) for _ in people]
    work = [(index, choice) for index, choice in enumerate(last) for _ in range(2)]  # each sends twice, through both processes
    random.shuffle(work)

    def send(job: tuple[int, tuple[int, str]]) -> str:
        number, (index, choice) = job
        return doors[number % 2].vote(code, people[index].token, round="first", choice=choice, item_no=1).choice

    with ThreadPoolExecutor(40) as threads:
        assert list(threads.map(send, enumerate(work))) == [choice for _, choice in work]
    assert stored_votes(database) == {(person.id, 1, "first"): choice for person, choice in zip(people, last, strict=True)}
    for door in (*doors, again()):
        door._copies.of(code).look_s = 0.0
        assert door.projector_view(code)["answered"] == 300
        assert door.console_view(code)["shares"]["n"] == 300
    room.act(code, "next")
    assert room.audience_base(code)["votes"]["first"] == {"total": 300, "counts": dict(Counter(last))}


def test_a_vote_is_either_in_the_histogram_or_refused_however_close_the_end(room: Classroom, database: Store) -> None:
    """Everybody votes while the instructor closes the vote: whoever was acknowledged is counted, and nobody else."""
    for _ in range(5):
        code, people = new_class(room, people=24, at="vote")

        def send(person: object, code: str = code) -> bool:
            try:
                cast(room, code, person, RIGHT)  # type: ignore[arg-type]
            except VoteClosedError:
                return False
            return True

        with ThreadPoolExecutor(25) as threads:
            sent = [threads.submit(send, person) for person in people]
            threads.submit(room.act, code, "next").result()
            accepted = {person.id for person, done in zip(people, sent, strict=True) if done.result()}
        assert {person for person, _, _ in stored_votes(database)} & {person.id for person in people} == accepted
        assert room.projector_view(code)["votes"]["first"]["total"] == len(accepted)


def test_the_end_of_a_vote_waits_for_the_votes_that_are_being_recorded(room: Classroom, database: Store, clock: Clock) -> None:
    """So that a histogram on the wall never grows by a vote that was on its way; and votes that keep coming do not hold the end up."""
    code, (ada, bob) = new_class(room, people=2, at="vote")
    with ThreadPoolExecutor(2) as threads:
        with database.write() as connection:
            recorded, _ = casting.cast(connection, code, ada.token, round="first", choice=RIGHT, item_no=1, now_s=clock.now_s)
            closing = threads.submit(room.act, code, "next")
            time.sleep(0.3)
            late = threads.submit(cast, room, code, bob, WRONG)
            time.sleep(0.3)
            assert not closing.done()
            assert not late.done()
        assert closing.result().state == "votes"
        if database.dialect == "postgresql":
            assert isinstance(late.exception(), VoteClosedError), "who asks later waits behind the instructor"
    assert stored_votes(database)[ada.id, 1, "first"] == recorded.choice


def test_on_postgresql_votes_leave_connections_for_the_others(opened: Callable[..., Store], clock: Clock) -> None:
    store = opened()
    room = Classroom(store, clock=clock)
    code, people = new_class(room, people=2 * CONNECTIONS, at="vote")
    held, release = threading.Event(), threading.Event()

    def lock() -> None:
        with store.write() as connection:
            if store.dialect == "postgresql":
                turns.alone(connection, code)
            held.set()
            release.wait(20)

    with ThreadPoolExecutor(1 + 2 * CONNECTIONS) as threads:
        holding = threads.submit(lock)
        assert held.wait(10)
        sent = [threads.submit(cast, room, code, person, RIGHT) for person in people]
        time.sleep(0.3)
        assert room.classes()[0].code == code, "it is read while the votes are waiting"
        release.set()
        holding.result()
        for each in sent:
            each.result()
    assert len(stored_votes(store)) == 2 * CONNECTIONS


def test_one_participant_on_two_devices_ends_with_what_the_store_took_last(room: Classroom, database: Store) -> None:
    code, (ada,) = new_class(room, people=1, at="vote")
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda number: cast(room, code, ada, CHOICES[number % 4]), range(64)))
    (stored,) = stored_votes(database).values()
    assert room.audience_view(code, ada.token)["me"]["votes"]["first"] == stored


def test_while_the_database_is_locked_a_vote_is_refused_or_recorded_never_both(
    opened: Callable[..., Store], clock: Clock, database: Store
) -> None:
    impatient = Classroom(opened(busy_limit_s=0.3), clock=clock)
    code, people = new_class(impatient, people=20, at="vote")
    locked, release = threading.Event(), threading.Event()

    def lock() -> None:
        with database.write() as connection:
            if database.dialect == "postgresql":
                connection.execute(text("LOCK TABLE votes IN ACCESS EXCLUSIVE MODE"))
            locked.set()
            release.wait(20)

    def send(index: int) -> bool:
        time.sleep(0.05 * index)
        try:
            cast(impatient, code, people[index], CHOICES[index % 4])
        except StoreError:
            return False
        return True

    with ThreadPoolExecutor(21) as threads:
        holding = threads.submit(lock)
        assert locked.wait(10)
        sent = [threads.submit(send, index) for index in range(20)]
        assert not sent[0].result(), "who asked first has given up"
        release.set()
        holding.result()
        recorded = [done.result() for done in sent]
    assert not all(recorded)
    expected = {(people[index].id, 1, "first"): CHOICES[index % 4] for index in range(20) if recorded[index]}
    assert stored_votes(database) == expected
    assert impatient.projector_view(code)["answered"] == len(expected)
    for index in range(20):  # every phone sends again what was not acknowledged
        cast(impatient, code, people[index], CHOICES[index % 4])
    assert len(stored_votes(database)) == 20


def test_while_the_database_is_away_the_class_can_still_be_looked_at(cluster: Cluster, postgresql_url: str, tmp_path: Path) -> None:
    store = open_store(tmp_path, postgresql_url, busy_limit_s=1)
    room = Classroom(store)
    code, (ada, bob) = new_class(room, people=2, at="vote")
    cast(room, code, ada, RIGHT)
    cluster.stop()
    try:
        with pytest.raises(StoreError, match="cannot be reached"):
            cast(room, code, bob, WRONG)
        with pytest.raises(StoreError):
            room.act(code, "next")
        room._copies.of(code, look=False).look_s = 0.0
        assert room.audience_view(code, ada.token)["me"]["votes"]["first"] == RIGHT
        assert (room.projector_view(code)["state"], room.projector_view(code)["answered"]) == ("vote", 1)
        room.note(code, "The database is away.", "bad")
        assert room.console_view(code)["log"][-1]["words"] == "The database is away."
    finally:
        cluster.start()
    cast(room, code, bob, WRONG)
    assert room.projector_view(code)["answered"] == 2
    assert sorted(choice for (person, _, _), choice in stored_votes(store).items() if person in (ada.id, bob.id)) == [WRONG, RIGHT]
    store.close()


def test_nobody_who_looks_waits_for_a_database_that_does_not_even_refuse(
    cluster: Cluster, postgresql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "LOOK_LIMIT_S", 0.05)
    monkeypatch.setattr(copies, "FIRST_LIMIT_S", 0.05)
    store = open_store(tmp_path, postgresql_url, busy_limit_s=1)
    room = Classroom(store)
    code, (ada,) = new_class(room, people=1, at="vote")
    cast(room, code, ada, RIGHT)
    with cluster.hanging():
        room._copies.of(code, look=False).look_s = 0.0
        for _ in range(20):
            assert room.projector_view(code)["answered"] == 1
        with pytest.raises(StoreError, match="cannot be reached"):
            room.projector_view("AB23CD")
    monkeypatch.setattr(copies, "FIRST_LIMIT_S", 20.0)
    with pytest.raises(UnknownClassError):
        room.projector_view("AB23CD")
    store.close()


def test_predictions_are_votes_too(room: Classroom, database: Store) -> None:
    code, people = new_class(room, people=5, at="predict")
    for person, silhouette in zip(people, SILHOUETTES, strict=True):
        cast(room, code, person, silhouette, round="predict")
    room.act(code, "next")
    assert room.projector_view(code)["predictions"] == {"total": 5, "counts": dict.fromkeys(SILHOUETTES, 1)}
