"""What an instructor can do with a class: one function per action, from a state to the next one and the words for the log.

Owns the actions and what they refuse. Pure: must not store, and knows the time only as it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lessons.classroom.model import ORDERS, ROUNDS, STATE_WORDS, STATES, ClassState, Place, State, Tone
from lessons.classroom.shown import shown_run
from lessons.classroom.states import REVEALS, VOTING, ahead, back_place, next_place, skip_place
from lessons.classroom.words import clean_note

LONGEST_TIMER_S = 3_600
MOST_HANDS = 10_000
LONGEST_TRAIL = 100
RACERS = 4
KEY_SEEN = "The key of this item was seen: its votes stay as they are."


@dataclass(frozen=True, kw_only=True)
class Done:
    """How the class stands after an action, and what the log says of it."""

    state: ClassState
    words: str = ""
    tone: Tone = "info"


@dataclass(frozen=True, kw_only=True)
class Around:
    """What an action has to know besides the class."""

    now_s: float
    choices: Mapping[str, tuple[str, ...]]
    """Round -> what can be chosen in the present item."""
    picture: Mapping[str, Any]
    """What the projector shows now."""


Action = Callable[..., Done]


def apply(state: ClassState, around: Around, action: str, arguments: Mapping[str, Any]) -> Done:
    """Raises ValueError for an unknown action, one that is not possible now, and arguments that are none of its own."""
    do = ACTIONS.get(action)
    if do is None:
        raise ValueError(f"action={action[:40]!r}: must be one of {', '.join(ACTIONS)}")
    try:
        done = do(state, around, **arguments)
    except TypeError:
        raise ValueError(f"action={action!r}: does not take {', '.join(sorted(arguments)) or 'nothing'}") from None
    return replace(done, state=replace(done.state, version=state.version + 1, changed_s=around.now_s))


def _go(state: ClassState, around: Around, place: Place, *, back: bool = False) -> Done:
    """To `place`. A timer ends with its vote, a run with its item."""
    here = Place(item_no=state.item_no, state=state.state)
    trail = state.trail[:-1] if back else (*state.trail, here)[-LONGEST_TRAIL:]
    seen = state.keys_seen
    if place.state in REVEALS and place.item_no not in seen:
        seen = (*seen, place.item_no)
    other = place.item_no != state.item_no
    words = STATE_WORDS[place.state]
    if place.state not in ("lobby", "ended"):
        words = f"{words}, item {place.item_no}"
    return Done(
        state=replace(
            state, state=place.state, item_no=place.item_no, trail=trail, keys_seen=seen, closes_s=None,
            run=None if other else state.run, race=() if other else state.race,
            started_s=state.started_s if state.started_s is not None or place.state == "lobby" else around.now_s,
            item_s=around.now_s if other and place.item_no else state.item_s,
            ended_s=around.now_s if place.state == "ended" else None,
        ),
        words=f"Back to {words}." if back else f"{words}.",
    )


def _here(state: ClassState) -> Place:
    return Place(item_no=state.item_no, state=state.state)


def _next(state: ClassState, around: Around) -> Done:
    place = next_place(_here(state), state.order, len(state.lesson_ids))
    if place is None:
        raise ValueError("The class has ended; nothing comes next.")
    return _go(state, around, place)


def _back(state: ClassState, around: Around) -> Done:
    place = back_place(state.trail, state.keys_seen)
    if place is None:
        raise ValueError(KEY_SEEN if state.trail else "There is no way back from here.")
    return _go(state, around, place, back=True)


def _skip(state: ClassState, around: Around) -> Done:
    place = skip_place(_here(state), state.order)
    if place is None:
        raise ValueError(f"There is nothing to leave out after {STATE_WORDS[state.state]!r}.")
    return _go(state, around, place)


def _go_to(state: ClassState, around: Around, to: str) -> Done:
    possible = ahead(_here(state), state.order)
    if to not in possible:
        raise ValueError(f"to={str(to)[:20]!r}: must be one of {', '.join(possible) or 'nothing: the class is not at an item'}")
    target: State = next(one for one in STATES if one == to)
    return _go(state, around, Place(item_no=state.item_no, state=target))


def _reopen(state: ClassState, around: Around) -> Done:
    """The latest vote of this item takes votes again: by going back to it, or without its timer."""
    if state.state in VOTING:
        return Done(state=replace(state, closes_s=None), words="The vote is open again, without a limit.")
    if state.key_seen:
        raise ValueError(KEY_SEEN)
    trail = list(state.trail)
    while trail and trail[-1].item_no == state.item_no:
        place = trail.pop()
        if place.state in ("vote", "revote"):
            done = _go(replace(state, trail=(*trail, place)), around, place, back=True)
            return replace(done, words=f"{STATE_WORDS[place.state]} is open again.")
    raise ValueError("There is no vote of this item to open again.")


def _timer(state: ClassState, around: Around, seconds: float | None) -> Done:
    if state.state not in VOTING:
        raise ValueError("A timer needs an open vote.")
    if seconds is None:
        return Done(state=replace(state, closes_s=None), words="No timer any more.")
    return Done(state=replace(state, closes_s=around.now_s + _seconds(seconds)), words=f"The vote closes in {seconds:g} s.")


def _extend(state: ClassState, around: Around, seconds: float = 30) -> Done:
    """More time; a vote that the timer has closed is open again."""
    if state.state not in VOTING or state.closes_s is None:
        raise ValueError("There is no timer to extend.")
    closes_s = max(state.closes_s, around.now_s) + _seconds(seconds)
    return Done(state=replace(state, closes_s=closes_s), words=f"{seconds:g} s more for the vote.")


def _seconds(seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 1 <= seconds <= LONGEST_TIMER_S:
        raise ValueError(f"seconds={str(seconds)[:20]}: must be 1 to {LONGEST_TIMER_S}")
    return float(seconds)


def _swap_order(state: ClassState, around: Around) -> Done:
    if state.state in ("experiments", "key"):
        raise ValueError("The order of this item is fixed now; change it after the explanation.")
    order = ORDERS[1 - ORDERS.index(state.order)]
    words = "Experiments before the key." if order == ORDERS[0] else "The key before the experiments."
    return Done(state=replace(state, order=order), words=words)


def _hands(state: ClassState, around: Around, round: str, counts: Mapping[str, int]) -> Done:
    if round not in ROUNDS:
        raise ValueError(f"round={str(round)[:20]!r}: must be one of {', '.join(ROUNDS)}")
    if state.key_seen or state.lesson_id is None:
        raise ValueError("Hands are counted at an item whose key was not seen.")
    if not isinstance(counts, Mapping) or any(choice not in around.choices[round] for choice in counts):
        raise ValueError(f"counts: must name {', '.join(around.choices[round])}")
    for count in counts.values():
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST_HANDS:
            raise ValueError(f"counts={str(count)[:20]}: must be whole numbers from 0 to {MOST_HANDS}")
    hands = {**state.hands, f"{state.item_no}.{round}": {choice: count for choice, count in counts.items() if count}}
    return Done(state=replace(state, hands=hands), words=f"{sum(counts.values())} hands counted.")


def _blank(state: ClassState, around: Around, on: bool) -> Done:
    return Done(state=replace(state, blank=bool(on)), words="The projector is blank." if on else "The projector shows the class again.")


def _freeze(state: ClassState, around: Around, on: bool) -> Done:
    picture = (state.frozen or around.picture) if on else None
    return Done(state=replace(state, frozen=picture), words="The projector is frozen." if on else "The projector follows again.")


def _show_names(state: ClassState, around: Around, on: bool) -> Done:
    return Done(state=replace(state, show_names=bool(on)), words="Names are on the projector." if on else "Names are off the projector.")


def _note(state: ClassState, around: Around, text: str, item_no: int | None = None) -> Done:
    number = state.item_no if item_no is None else item_no
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= len(state.lesson_ids):
        raise ValueError(f"item_no={str(item_no)[:20]}: must be 0 (the whole class) to {len(state.lesson_ids)}")
    return Done(state=replace(state, notes={**state.notes, str(number): clean_note(text)}))


def _show_run(state: ClassState, around: Around, run: Mapping[str, Any] | None = None, race: list[Mapping[str, Any]] | None = None) -> Done:
    if run is None and not race:
        return Done(state=replace(state, run=None, race=()), words="No run is on the screens.")
    if state.state not in ("experiments", "key", "explanation"):
        raise ValueError("A run would give the vote away: it is shown from the experiments on.")
    if race and len(race) > RACERS:
        raise ValueError(f"race: must be at most {RACERS} runs")
    shown = None if run is None else shown_run(run)
    racers = tuple(shown_run(each) for each in race or ())
    title = shown["title"] if shown else "The race"
    words = "" if state.run and shown and state.run["run_id"] == shown["run_id"] else f"On the screens: {title}."
    return Done(state=replace(state, run=shown, race=racers), words=words)


def _end(state: ClassState, around: Around) -> Done:
    if state.state == "ended":
        raise ValueError("The class has ended already.")
    return _go(state, around, Place(item_no=state.item_no, state="ended"))


ACTIONS: dict[str, Action] = {
    "next": _next, "back": _back, "skip": _skip, "go_to": _go_to, "reopen": _reopen, "timer": _timer, "extend": _extend,
    "swap_order": _swap_order, "hands": _hands, "blank": _blank, "freeze": _freeze, "show_names": _show_names, "note": _note,
    "show_run": _show_run, "end": _end,
}
"""Those on participants (hide, unhide, remove, restore) are of `lessons.classroom.service`."""
