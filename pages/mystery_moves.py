"""What the buttons of a mystery run do, each on what the store holds at that moment, so that two tabs and a reload agree.

Owns the callbacks and which mystery run is shown. Must not draw anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from lessons.learners import DeadToken
from lessons.learning import get_learning
from lessons.mystery import Mysteries, Mystery, MysteryView, StaleMystery
from lessons.store import StoreError
from pages.learner import learner
from pages.notices import say
from scenarios.runs import QueueFull, get_runs

MYSTERY = "mystery"
"""The parameter of the address that names the run shown, so that a reload comes back to its verdict."""

GONE = "This run is no longer kept: everything under your link was deleted."


def mysteries() -> Mysteries:
    return get_learning().mysteries


def current() -> Mystery | None:
    """The one that the address names, if it is this learner's; else the one not named yet."""
    named = mysteries().get(str(st.query_params.get(MYSTERY, "")), learner())
    return named if named is not None else mysteries().open(learner())


def shown() -> MysteryView | None:
    """All that may be shown; None where there is no mystery run to go on with."""
    mystery = current()
    return None if mystery is None else mysteries().view(mystery)


def begin() -> None:
    """A new mystery run (or the open one), and its run at once."""
    _do(lambda: _run(mysteries().begin(learner())))


def answer() -> None:
    """The form's button."""
    _do(_answer)


def _answer() -> None:
    mystery = current()
    if mystery is None:
        say(GONE)
        return
    cause, figure, certainty = (st.session_state.get(f"{name}-{mystery.token}") for name in ("cause", "figure", "sure"))
    for value, sentence in ((cause, "Name a cause first."), (figure, "Say which figure told you."), (certainty, "Say how sure you are.")):
        if value is None:
            say(sentence)
            return
    _show(mysteries().answer(mystery, str(cause), str(figure), str(certainty), get_runs()))


def give_up() -> None:
    """To be told instead."""
    _do(_give_up)


def _give_up() -> None:
    mystery = current()
    if mystery is None:
        say(GONE)
        return
    _show(mysteries().give_up(mystery, get_runs()))


def act() -> None:
    """What the picture asked for: called before the rerun that it causes."""
    _do(_act)


def _act() -> None:
    asked: Any = st.session_state.get("lanes", {}).get("action") or {}
    action, mystery = asked.get("action"), current()
    if action in ("run", "run_again"):
        if mystery is None:
            begin()
        else:
            _run(mystery, afresh=action == "run_again")
    elif action == "stop" and mystery is not None and asked.get("run_id") == mystery.run_id:
        get_runs().stop(mystery.run_id or "", mystery.token)


def _run(mystery: Mystery, *, afresh: bool = False) -> None:
    _show(mysteries().run(mystery, get_runs(), afresh=afresh)[0])


def _show(mystery: Mystery) -> None:
    st.query_params[MYSTERY] = mystery.token


def _do(change: Callable[[], None]) -> None:
    """Carry out a change; what is in its way becomes a sentence, a store that cannot even be read too."""
    try:
        change()
    except StaleMystery as stale:
        say(str(stale))
        _show(stale.current)
    except (QueueFull, StoreError, DeadToken, ValueError) as fault:
        say(str(fault))
