"""The order of the states of a class, as pure functions: what comes next, what may be left out, where one may go back to.

    lobby -> [vote -> votes -> discuss -> revote -> predict -> experiments -> key -> explanation] per item -> ended

Owns the order. Must not know votes, lessons or time.
"""

from __future__ import annotations

from lessons.classroom.model import Order, Place, Round, State

_ITEM: tuple[State, ...] = ("vote", "votes", "discuss", "revote", "predict", "experiments", "key", "explanation")
_KEY_FIRST: tuple[State, ...] = ("vote", "votes", "discuss", "revote", "predict", "key", "experiments", "explanation")

SKIPPABLE: frozenset[State] = frozenset({"discuss", "revote", "predict", "experiments"})
"""An item is whole without them."""
VOTING: dict[State, Round] = {"vote": "first", "revote": "second", "predict": "predict"}
"""What can be voted on in a state."""
REVEALS: frozenset[State] = frozenset({"key", "explanation"})
"""States that put the key on screen."""
WITH_RUNS: frozenset[State] = frozenset({"experiments", "key", "explanation"})
"""States in which runs are on the screens."""


def chain(order: Order) -> tuple[State, ...]:
    """The states of one item, in order."""
    return _ITEM if order == "experiments_first" else _KEY_FIRST


def next_place(place: Place, order: Order, items: int) -> Place | None:
    """What follows; None after the end."""
    if place.state == "ended":
        return None
    if place.state == "lobby":
        return Place(item_no=1, state="vote")
    if place.state == "explanation":
        return Place(item_no=place.item_no + 1, state="vote") if place.item_no < items else Place(item_no=place.item_no, state="ended")
    states = chain(order)
    return Place(item_no=place.item_no, state=states[states.index(place.state) + 1])


def next_state(state: State, order: Order, *, last: bool = True) -> State | None:
    """`next_place` for whoever needs the state only."""
    found = next_place(Place(item_no=1, state=state), order, 1 if last else 2)
    return None if found is None else found.state


def skip_place(place: Place, order: Order) -> Place | None:
    """Where leaving out what comes next leads to: a class that agrees goes from its votes to the prediction. None: nothing to leave out."""
    states = chain(order)
    target: State | None = None
    if place.state in ("votes", "discuss"):
        target = "predict"
    elif place.state == "revote":
        target = states[states.index("predict") + 1]
    return None if target is None else Place(item_no=place.item_no, state=target)


def ahead(place: Place, order: Order) -> tuple[State, ...]:
    """States of the same item that one may go on to: everything in between may be left out."""
    if place.state in ("lobby", "ended"):
        return ()
    states = chain(order)
    found: list[State] = []
    for state in states[states.index(place.state) + 1 :]:
        found.append(state)
        if state not in SKIPPABLE and state != "votes":
            break
    return tuple(found)


def back_place(trail: tuple[Place, ...], keys_seen: tuple[int, ...]) -> Place | None:
    """Where the class came from, unless going back there would do harm: nobody votes on an item whose key was seen."""
    if not trail:
        return None
    last = trail[-1]
    return None if last.state in VOTING and last.item_no in keys_seen else last
