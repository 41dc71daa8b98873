"""Classes in which anything happens in any order: no vote is lost or doubled, nothing leaks, and a restart finds it all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lessons.classroom import ROUNDS, Classroom, RemovedError, StaleClassError, VoteClosedError, keeping
from lessons.classroom.actions import ACTIONS
from lessons.classroom.casting import GRACE_S
from lessons.model import SILHOUETTES, Lesson
from lessons.store import Store
from tests.lessons.classroom.conftest import Clock
from tests.lessons.classroom.playing import new_class, stored_votes
from tests.lessons.classroom.test_secrets import leaks

OPEN = {("vote", "first"), ("revote", "second"), ("predict", "predict")}
WITH_KEY = ("experiments", "key", "explanation")
CHOICES = {"first": ["m4", "q7", "t2", "x8"], "second": ["m4", "q7", "t2", "x8"], "predict": list(SILHOUETTES)}

PEOPLE = 6
who = st.integers(0, PEOPLE - 1)
moves = st.sampled_from(["next", "next", "next", "back", "skip", "reopen", "swap_order", "end"])
states = st.sampled_from(["discuss", "predict", "experiments", "key"])
steps = st.one_of(
    st.tuples(st.just("vote"), who, st.sampled_from(ROUNDS), st.integers(0, 4), st.booleans()),
    st.tuples(st.just("vote"), who, st.just(None), st.integers(0, 4), st.just(True)),
    st.tuples(st.just("act"), moves, st.just({})),
    st.tuples(st.just("act"), st.just("go_to"), states.map(lambda state: {"state": state})),
    st.tuples(st.just("act"), st.sampled_from(["timer", "extend"]), st.just({"seconds": 10})),
    st.tuples(st.just("act"), st.sampled_from(["freeze", "blank", "show_names"]), st.fixed_dictionaries({"on": st.booleans()})),
    st.tuples(st.just("act"), st.just("show_run"), st.just({"run": {"run_id": "r", "title": "", "cause_id": "k2"}})),
    st.tuples(st.just("person"), who, st.sampled_from(["hide", "remove", "restore"])),
    st.tuples(st.just("later"), st.integers(1, 15)),
    st.tuples(st.just("restart")),
    st.tuples(st.just("elsewhere")),
)


class Played:
    """A class, and what a witness knows of it: who voted for what, and what was acknowledged."""

    def __init__(self, room: Classroom, another: Callable[[], Classroom], clock: Clock, store: Store) -> None:
        self.room, self.another, self.clock, self.store = room, another, clock, store
        self.code, self.people = new_class(room, lessons=["one-busy-gpu", "one-busy-gpu"], people=PEOPLE)
        self.votes: dict[tuple[int, int, str], str] = {}
        self.removed: set[int] = set()
        self.frozen: Mapping[str, Any] | None = None

    def do(self, kind: str, *arguments: Any) -> None:
        getattr(self, f"_{kind}")(*arguments)

    def _vote(self, index: int, round_name: str | None, choice_no: int, here: bool) -> None:
        state, person = self.room.state(self.code), self.people[index]
        voting = round_name or next((each for at, each in OPEN if at == state.state), "first")
        item_no = max(1, state.item_no) if here else 3 - max(1, state.item_no)
        choice = CHOICES[voting][choice_no % len(CHOICES[voting])]
        key = (person.id, item_no, voting)
        in_time = state.closes_s is None or self.clock.now_s <= state.closes_s + GRACE_S
        may = (state.state, voting) in OPEN and item_no == state.item_no and in_time
        refused: type[Exception] | None = None
        try:
            self.room.vote(self.code, person.token, round=voting, choice=choice, item_no=item_no)
        except (VoteClosedError, RemovedError) as error:
            refused = type(error)
        if person.id in self.removed:
            assert refused is RemovedError
        elif may or self.votes.get(key) == choice:
            assert refused is None
            self.votes[key] = choice
        else:
            assert refused is VoteClosedError

    def _act(self, action: str, arguments: dict[str, Any]) -> None:
        before = self.room.state(self.code)
        assert action in ACTIONS
        try:
            after = self.room.act(self.code, action, expect_version=before.version, **arguments)
        except ValueError:
            assert self.room.state(self.code) == before
            return
        assert after.version == before.version + 1
        if after.state in ("vote", "revote", "predict"):
            assert after.item_no not in after.keys_seen, "nobody votes on an item whose key was seen"

    def _person(self, index: int, action: str) -> None:
        person = self.people[index]
        self.room.act(self.code, action, participant=person.id)
        if action != "hide":
            (self.removed.add if action == "remove" else self.removed.discard)(person.id)

    def _later(self, seconds: int) -> None:
        self.clock.now_s += seconds

    def _restart(self) -> None:
        before = self.room.console_view(self.code)
        self.room = self.another()
        assert self.room.console_view(self.code) == before

    def _elsewhere(self) -> None:
        """Another replica goes on; this one notices."""
        other = self.another()
        other.act(self.code, "note", text="x")
        self.room._copies.of(self.code, look=False).look_s = 0.0
        assert self.room.state(self.code) == other.state(self.code)

    def check(self, lesson: Lesson) -> None:
        own = {person.id for person in self.people}
        assert {key: choice for key, choice in stored_votes(self.store).items() if key[0] in own} == self.votes
        state = self.room.state(self.code)
        for each in ROUNDS:
            counted = self.room._copies.of(self.code).counts(state.item_no, each)
            expected = [choice for (person, item, voted), choice in self.votes.items()
                        if (item, voted) == (state.item_no, each) and person not in self.removed]
            assert sorted(counted.elements()) == sorted(expected)
        self._check_secrets(lesson)

    def _check_secrets(self, lesson: Lesson) -> None:
        state = self.room.state(self.code)
        shown = self.room.projector_view(self.code)
        frozen, self.frozen = self.frozen, shown if state.frozen is not None else None
        if frozen is not None and self.frozen is not None:
            changing = {"version", "server_s", "may_vote", "blank", "names"}
            assert {name: value for name, value in shown.items() if name not in changing} == {
                name: value for name, value in frozen.items() if name not in changing
            }
        there = next((person for person in self.people if person.id not in self.removed), None)
        views = [self.room.audience_view(self.code, there.token)] if there else []
        views += [] if state.frozen else [shown]
        for view in views:
            at, seen = state.state, state.item_no in state.keys_seen
            assert (view["key"] is not None) == (seen and at in WITH_KEY)
            assert (view["explanation"] is not None) == (at == "explanation")
            assert view["run"] is None or at in WITH_KEY
            if at in ("lobby", "vote", "revote"):
                assert view["votes"] is None
            may = {"key": view["key"] is not None, "explanation": at == "explanation", "title": at in ("predict", *WITH_KEY)}
            assert leaks(view, lesson, but=tuple(kind for kind in may if may[kind])) == []
            json.dumps(view, allow_nan=False)


@given(played=st.lists(steps, min_size=5, max_size=40))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_whatever_happens_in_whatever_order(
    room: Classroom, again: Callable[[], Classroom], clock: Clock, database: Store, lesson: Lesson, played: list[tuple[Any, ...]]
) -> None:
    clock.now_s = 1_000_000.0
    a_class = Played(room, lambda: Classroom(database, clock=clock), clock, database)
    for step in played:
        a_class.do(*step)
        a_class.check(lesson)
    assert again().console_view(a_class.code) == a_class.room.console_view(a_class.code), "another process finds all of it"


def test_of_two_instructors_at_once_one_is_told(room: Classroom, again: Callable[[], Classroom]) -> None:
    code, _ = new_class(room, at="vote")
    other = again()
    seen = other.state(code).version
    room.act(code, "next")
    with pytest.raises(StaleClassError) as stale:
        other.act(code, "next", expect_version=seen)
    assert (stale.value.current, room.state(code).state) == (room.state(code), "votes")


def test_the_store_takes_a_class_only_as_what_follows_the_version_it_has(room: Classroom, database: Store) -> None:
    code, _ = new_class(room, at="vote")
    state = room.state(code)
    with database.write() as connection:
        assert not keeping.replace_class(connection, replace(state, state="ended"))
        assert not keeping.replace_class(connection, replace(state, state="ended", version=state.version + 2))
        assert keeping.read_class(connection, code) == state
        assert keeping.replace_class(connection, replace(state, state="ended", version=state.version + 1))
