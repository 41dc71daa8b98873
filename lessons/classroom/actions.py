"""What an instructor can do with a class: one function per action, from a state of the class to the next one.

Owns the actions that are no moves, and how any of them is called with arguments that come from a browser. Pure: must not store, and knows
the time only as it is told. Those on participants are in `lessons.classroom.people`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from inspect import signature
from typing import Any

from lessons.classroom.doing import Action, Around, Done, duration, switch, whole
from lessons.classroom.model import ORDERS, ROUNDS, ClassState
from lessons.classroom.moves import KEY_SEEN, MOVES
from lessons.classroom.shown import shown_race, shown_run
from lessons.classroom.states import VOTING, WITH_RUNS
from lessons.classroom.words import clean_note

MOST_HANDS = 10_000


def apply(state: ClassState, around: Around, action: str, arguments: Mapping[str, Any]) -> Done:
    """Raises ValueError for an unknown action, one that is not possible now, and arguments that are none of its own."""
    do = ACTIONS.get(action) if isinstance(action, str) else None
    if do is None:
        raise ValueError(f"action={str(action)[:40]!r}: must be one of {', '.join(ACTIONS)}")
    taken = signature(do)
    try:
        taken.bind(state, around, **arguments)
    except TypeError:
        names = ", ".join(list(taken.parameters)[2:])
        raise ValueError(f"action={action!r}: takes {names or 'nothing else'}, not {', '.join(arguments)[:80] or 'nothing'}") from None
    done = do(state, around, **arguments)
    return replace(done, state=replace(done.state, version=state.version + 1, changed_s=around.now_s))


def _timer(now: ClassState, around: Around, /, seconds: float | None) -> Done:
    """The open vote closes by itself; None takes the timer away."""
    if now.state not in VOTING:
        raise ValueError("A timer needs an open vote.")
    if seconds is None:
        return Done(state=replace(now, closes_s=None), words="The vote is open without a limit.")
    length = duration(seconds)
    return Done(state=replace(now, closes_s=around.now_s + length), words=f"The vote closes in {length:g} s.")


def _extend(now: ClassState, around: Around, /, seconds: float = 30) -> Done:
    """More time; a vote that the timer has closed is open again."""
    if now.state not in VOTING or now.closes_s is None:
        raise ValueError("There is no timer to extend.")
    length = duration(seconds)
    return Done(state=replace(now, closes_s=max(now.closes_s, around.now_s) + length), words=f"{length:g} s more for the vote.")


def _swap_order(now: ClassState, around: Around, /) -> Done:
    if now.state in ("experiments", "key"):
        raise ValueError("The order of this item is fixed now; change it after the explanation.")
    order = ORDERS[1 - ORDERS.index(now.order)]
    words = "Experiments before the key." if order == "experiments_first" else "The key before the experiments."
    return Done(state=replace(now, order=order), words=words)


def _hands(now: ClassState, around: Around, /, round: str, counts: Mapping[str, int]) -> Done:
    """A show of hands, in place of the one before; it is added to the votes of the phones."""
    if round not in ROUNDS:
        raise ValueError(f"round={str(round)[:20]!r}: must be one of {', '.join(ROUNDS)}")
    if now.lesson_id is None:
        raise ValueError("Hands are counted at an item.")
    if now.key_seen:
        raise ValueError(KEY_SEEN)
    choices = around.choices[round]
    if not isinstance(counts, Mapping) or any(choice not in choices for choice in counts):
        raise ValueError(f"counts: must be numbers for {', '.join(choices)}")
    hands = {choice: whole(f"counts.{choice}", count, 0, MOST_HANDS) for choice, count in counts.items()}
    kept = {**now.hands, f"{now.item_no}.{round}": {choice: count for choice, count in hands.items() if count}}
    return Done(state=replace(now, hands=kept), words=f"{sum(hands.values())} hands counted.")


def _blank(now: ClassState, around: Around, /, on: bool) -> Done:
    words = "The projector is blank." if switch("on", on) else "The projector is on again."
    return Done(state=replace(now, blank=on), words=words)


def _freeze(now: ClassState, around: Around, /, on: bool) -> Done:
    """The projector keeps its picture while the instructor goes on."""
    if not switch("on", on):
        return Done(state=replace(now, frozen=None), words="The projector follows again.")
    return Done(state=replace(now, frozen=now.frozen or around.picture), words="The projector is frozen.")


def _show_names(now: ClassState, around: Around, /, on: bool) -> Done:
    words = "Names are on the projector." if switch("on", on) else "Names are off the projector."
    return Done(state=replace(now, show_names=on), words=words)


def _note(now: ClassState, around: Around, /, text: str, item_no: int | None = None) -> Done:
    """The instructor's own notes on an item, by default the present one; 0 is the lobby."""
    number = whole("item_no", now.item_no if item_no is None else item_no, 0, len(now.lesson_ids))
    return Done(state=replace(now, notes={**now.notes, str(number): clean_note(text)}))


def _show_run(
    now: ClassState, around: Around, /, run: Mapping[str, Any] | None = None, race: list[Mapping[str, Any]] | None = None
) -> Done:
    """Put a run, or several that race, on all screens; neither takes them off."""
    if run is None and not race:
        return Done(state=replace(now, run=None, race=()), words="No run is on the screens." if now.run or now.race else "")
    if now.state not in WITH_RUNS:
        raise ValueError("A run would give the vote away: it is shown from the experiments on.")
    shown, racers = None if run is None else shown_run(run), shown_race(race or [])
    same = shown is not None and now.run is not None and now.run["run_id"] == shown["run_id"]
    title = (shown["title"] if shown else "the race") or "a run"
    return Done(state=replace(now, run=shown, race=racers), words="" if same else f"On the screens: {title}.")


ACTIONS: dict[str, Action] = {
    **MOVES, "timer": _timer, "extend": _extend, "swap_order": _swap_order, "hands": _hands, "blank": _blank, "freeze": _freeze,
    "show_names": _show_names, "note": _note, "show_run": _show_run,
}
