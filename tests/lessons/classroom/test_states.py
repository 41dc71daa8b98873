"""The order of the states: every transition there is, and every one there must not be."""

from __future__ import annotations

import pytest

from lessons.classroom.model import STATES, Order, Place, State
from lessons.classroom.states import SKIPPABLE, ahead, back_place, chain, next_place, next_state, skip_place

NEXT: dict[tuple[State, Order], State | None] = {
    ("lobby", "experiments_first"): "vote", ("vote", "experiments_first"): "votes", ("votes", "experiments_first"): "discuss",
    ("discuss", "experiments_first"): "revote", ("revote", "experiments_first"): "predict", ("predict", "experiments_first"): "experiments",
    ("experiments", "experiments_first"): "key", ("key", "experiments_first"): "explanation",
    ("explanation", "experiments_first"): "ended", ("ended", "experiments_first"): None,
    ("lobby", "key_first"): "vote", ("vote", "key_first"): "votes", ("votes", "key_first"): "discuss", ("discuss", "key_first"): "revote",
    ("revote", "key_first"): "predict", ("predict", "key_first"): "key", ("key", "key_first"): "experiments",
    ("experiments", "key_first"): "explanation", ("explanation", "key_first"): "ended", ("ended", "key_first"): None,
}


def test_the_table_knows_every_state() -> None:
    assert {state for state, _ in NEXT} == set(STATES)


@pytest.mark.parametrize(("state", "order"), NEXT)
def test_next(state: State, order: Order) -> None:
    assert next_state(state, order) == NEXT[state, order]


def test_after_an_explanation_comes_the_vote_of_the_next_item() -> None:
    assert next_place(Place(item_no=1, state="explanation"), "key_first", 2) == Place(item_no=2, state="vote")
    assert next_place(Place(item_no=2, state="explanation"), "key_first", 2) == Place(item_no=2, state="ended")
    assert next_place(Place(item_no=0, state="lobby"), "key_first", 2) == Place(item_no=1, state="vote")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("order", "after_revote"), [("experiments_first", "experiments"), ("key_first", "key")])
def test_skip_leaves_out_what_may_be_left_out(state: State, order: Order, after_revote: State) -> None:
    expected = {"votes": "predict", "discuss": "predict", "revote": after_revote}.get(state)
    place = skip_place(Place(item_no=2, state=state), order)
    assert place == (None if expected is None else Place(item_no=2, state=expected))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("order", ["experiments_first", "key_first"])
def test_one_may_go_ahead_past_what_may_be_left_out_and_no_further(state: State, order: Order) -> None:
    possible = ahead(Place(item_no=1, state=state), order)
    if state in ("lobby", "ended"):
        assert possible == ()
        return
    states = chain(order)
    rest = states[states.index(state) + 1 :]
    assert possible == rest[: len(possible)]
    assert set(possible[:-1]) <= SKIPPABLE | {"votes"}
    assert "explanation" not in possible or state in ("key", "experiments")
    assert ("key" in possible) == (state not in ("key", "explanation") and not (state == "experiments" and order == "key_first"))


@pytest.mark.parametrize("voting", ["vote", "revote", "predict"])
def test_nobody_votes_on_an_item_whose_key_was_seen(voting: State) -> None:
    came_from = (Place(item_no=1, state=voting),)
    assert back_place(came_from, ()) == came_from[0]
    assert back_place(came_from, (2,)) == came_from[0]
    assert back_place(came_from, (1,)) is None


def test_there_is_no_way_back_from_the_beginning() -> None:
    assert back_place((), ()) is None
