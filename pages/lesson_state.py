"""Where this learner stands in the lesson: one attempt, found by the learner's cookie and the token in the URL.

Owns the way from cookie and URL to attempt and back. Must not draw anything.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from lessons import Lesson, load_lessons
from lessons.attempts import Attempt, AttemptStore, StaleAttempt, StoreError, UnknownAttempt
from lessons.deep_links import ATTEMPT, DeepLink, parse_link
from lessons.learners import DeadToken
from lessons.learning import get_learning
from lessons.public_view import PublicView, public_view
from pages.learner import learner
from pages.notices import say

NOT_HERE = (
    "The answer that this address names is not there to go on with: it was deleted, its question was rewritten, or it is another browser’s."
)


def store() -> AttemptStore:
    """The attempts of this server. Raises StoreError where the store cannot be opened."""
    return get_learning().attempts


def link() -> DeepLink:
    """What the URL asks for, as far as it is usable."""
    return parse_link(st.query_params.to_dict(), load_lessons())


def chosen_lesson() -> Lesson:
    """The lesson that the URL names, or the first one."""
    lessons = load_lessons()
    return lessons.get(link().lesson or "") or lessons.lessons[0]


def current(lesson: Lesson) -> Attempt:
    """The attempt to go on with: that of the URL, else the learner's unfinished one, else a fresh one that is kept nowhere yet."""
    return store().open(lesson, learner=learner(), token=link().attempt)


def found(lesson: Lesson) -> Attempt | None:
    """`current` for a button: None, with a sentence for the page, where the store cannot be read."""
    try:
        return current(lesson)
    except StoreError as fault:
        say(str(fault))
        return None


def view_of(lesson: Lesson, attempt: Attempt) -> PublicView:
    """All that may be shown now."""
    return public_view(lesson, attempt)


def move(lesson: Lesson, change: Callable[[Attempt], Attempt]) -> Attempt | None:
    """Change the attempt. None, with a sentence for the page, where that was not possible."""
    try:
        attempt = change(current(lesson))
    except (StaleAttempt, DeadToken) as other:
        say(str(other))
        return None
    except (StoreError, UnknownAttempt, ValueError) as fault:
        say(str(fault) or "This attempt is no longer known here.")
        return None
    if st.query_params.get(ATTEMPT) != attempt.token:
        st.query_params[ATTEMPT] = attempt.token
    return attempt


def focus_target(stage: str, token: str, asked: str | None) -> tuple[str, str]:
    """Where the focus belongs, and a token that changes when it has to move: with a new stage, or to the race when it was asked for."""
    if asked == "race":
        st.session_state["races"] = st.session_state.get("races", 0) + 1
        st.session_state["focus"] = ("at-race", f"race-{st.session_state['races']}")
    elif st.session_state.get("stage") != token:
        st.session_state["focus"] = (f"at-{stage}", token)
    st.session_state["stage"] = token
    target, token = st.session_state["focus"]
    return str(target), str(token)
