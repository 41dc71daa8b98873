"""Where this visitor stands in the lesson: one attempt, under a random token in the URL.

Owns the way from URL to attempt and back. Must not draw anything.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from lessons import Lesson, load_lessons
from lessons.attempts import Attempt, AttemptStore, StaleAttempt, StoreError, UnknownAttempt
from lessons.deep_links import ATTEMPT, DeepLink, parse_link
from lessons.public_view import PublicView, public_view
from scenarios.settings import load_settings


@st.cache_resource(show_spinner=False)
def store() -> AttemptStore:
    """The attempts of this server."""
    return AttemptStore(load_settings().data_dir)


def link() -> DeepLink:
    """What the URL asks for, as far as it is usable."""
    return parse_link(st.query_params.to_dict(), load_lessons())


def chosen_lesson() -> Lesson:
    """The lesson that the URL names, or the first one."""
    lessons = load_lessons()
    return lessons.get(link().lesson or "") or lessons.lessons[0]


def current(lesson: Lesson) -> Attempt | None:
    """The attempt that the URL names, if it is one at this lesson."""
    token = link().attempt
    attempt = store().get(token) if token else None
    return attempt if attempt is not None and attempt.lesson_id == lesson.id else None


def view_of(lesson: Lesson, attempt: Attempt | None) -> PublicView:
    """All that may be shown now. A visitor who has not answered yet has no row in the store."""
    if attempt is None:
        attempt = Attempt(
            token="", lesson_id=lesson.id, stage="question", version=0, answers=(), certainties=(), predictions=(), runs={},
            shown=False, created_s=0.0, changed_s=0.0,
        )
    return public_view(lesson, attempt)


def move(lesson: Lesson, change: Callable[[Attempt], Attempt]) -> Attempt | None:
    """Change the attempt, starting one where there is none. None, with a sentence for the page, where that was not possible."""
    try:
        attempt = change(current(lesson) or store().start(lesson.id))
    except StaleAttempt as stale:
        say(str(stale))
        return None
    except (StoreError, UnknownAttempt, ValueError) as fault:
        say(str(fault) or "This attempt is no longer known here.")
        return None
    if st.query_params.get(ATTEMPT) != attempt.token:
        st.query_params[ATTEMPT] = attempt.token
    return attempt


def say(text: str) -> None:
    """A sentence to show once, at the next run of the script."""
    st.session_state["said"] = text


def said() -> str | None:
    text = st.session_state.pop("said", None)
    return text if isinstance(text, str) else None


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
