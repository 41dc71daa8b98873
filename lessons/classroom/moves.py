"""The actions that bring a class from one state to another: next, back, skip, go_to, reopen, end.

Owns what goes with a move: the way back, the timer that ends, the run that leaves the screens, the key that has been seen.
"""

from __future__ import annotations

from dataclasses import replace

from lessons.classroom.doing import Action, Around, Done
from lessons.classroom.model import STATE_WORDS, STATES, ClassState, Place
from lessons.classroom.states import REVEALS, VOTING, ahead, back_place, next_place, skip_place

LONGEST_TRAIL = 100
KEY_SEEN = "The key of this item was seen: its votes stay as they are."


def place_of(state: ClassState) -> Place:
    return Place(item_no=state.item_no, state=state.state)


def _next(now: ClassState, around: Around, /) -> Done:
    place = next_place(place_of(now), now.order, len(now.lesson_ids))
    if place is None:
        raise ValueError("The class has ended; nothing comes next.")
    return _go(now, around, place)


def _back(now: ClassState, around: Around, /) -> Done:
    """To where the class came from, if that does no harm."""
    place = back_place(now.trail, now.keys_seen)
    if place is None:
        raise ValueError(KEY_SEEN if now.trail else "There is no way back from here.")
    return _go(now, around, place, back=True)


def _skip(now: ClassState, around: Around, /) -> Done:
    place = skip_place(place_of(now), now.order)
    if place is None:
        raise ValueError(f"There is nothing to leave out after {STATE_WORDS[now.state]!r}.")
    return _go(now, around, place)


def _go_to(now: ClassState, around: Around, /, state: str) -> Done:
    """Ahead in the same item, past what may be left out."""
    possible = ahead(place_of(now), now.order)
    target = next((known for known in STATES if known == state), None)
    if target is None or target not in possible:
        raise ValueError(f"state={str(state)[:20]!r}: must be one of {', '.join(possible) or 'nothing, the class is not at an item'}")
    return _go(now, around, Place(item_no=now.item_no, state=target))


def reopened(now: ClassState) -> Place | None:
    """Where the latest vote of this item is opened again; None where there is none, or its key was seen.

    That of a vote with a timer is where the class is.
    """
    if now.state in VOTING and now.closes_s is not None:
        return place_of(now)
    if now.key_seen or now.state in ("vote", "revote", "ended"):
        return None
    of_item = [place for place in now.trail if place.item_no == now.item_no and place.state in ("vote", "revote")]
    return of_item[-1] if of_item else None


def _reopen(now: ClassState, around: Around, /) -> Done:
    place = reopened(now)
    if place is None:
        raise ValueError(KEY_SEEN if now.key_seen else "There is no vote to open again.")
    if place == place_of(now):
        return Done(state=replace(now, closes_s=None), words="The vote is open without a limit.")
    trail = list(now.trail)
    while trail[-1] != place:
        trail.pop()
    return replace(_go(replace(now, trail=tuple(trail)), around, place, back=True), words=f"{STATE_WORDS[place.state]} is open again.")


def _end(now: ClassState, around: Around, /) -> Done:
    if now.state == "ended":
        raise ValueError("The class has ended already.")
    return _go(now, around, Place(item_no=now.item_no, state="ended"))


def _go(now: ClassState, around: Around, place: Place, *, back: bool = False) -> Done:
    trail = now.trail[:-1] if back else (*now.trail, place_of(now))[-LONGEST_TRAIL:]
    seen = now.keys_seen
    if place.state in REVEALS and place.item_no not in seen:
        seen = (*seen, place.item_no)
    other = place.item_no != now.item_no
    begun = now.started_s is not None or place.state in ("lobby", "ended")
    words = STATE_WORDS[place.state]
    if place.state not in ("lobby", "ended"):
        words = f"{words}, item {place.item_no}"
    return Done(
        state=replace(
            now, state=place.state, item_no=place.item_no, trail=trail, keys_seen=seen, closes_s=None,
            run=None if other else now.run, race=() if other else now.race,
            started_s=now.started_s if begun else around.now_s,
            item_s=around.now_s if other else now.item_s,
            ended_s=around.now_s if place.state == "ended" else None,
        ),
        words=f"Back to: {words}." if back else f"{words}.",
    )


MOVES: dict[str, Action] = {"next": _next, "back": _back, "skip": _skip, "go_to": _go_to, "reopen": _reopen, "end": _end}
