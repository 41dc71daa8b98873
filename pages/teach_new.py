"""A new class: which lessons, in which order, and how long each may take.

Owns the form. What a class is, is for `lessons.classroom`.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons import load_lessons
from lessons.classroom import get_classroom
from lessons.model import Lesson
from lessons.store import StoreError
from pages.notices import say

MINUTES_ALONE = 20
MINUTES_AMONG_OTHERS = 12
"""A vote, talking, a second vote, a prediction, one or two runs, the key: what one takes of a lesson hour."""
LONGEST_MINUTES = 180
TITLE = "new-title"
CLASS = "class"
"""The parameter that names a class in the page's address."""


def new_class() -> None:
    """Lessons, title, minutes, and the button."""
    lessons = {lesson.id: lesson for lesson in load_lessons().lessons}
    st.html('<h2 class="pg-h">A new class</h2>')
    with st.container(key="teach-new"):
        chosen = st.multiselect(
            "Lessons, in the order of the class", list(lessons), default=list(lessons)[:1], key="new-lessons",
            format_func=lambda lesson_id: lessons[lesson_id].title, placeholder="Choose one or more",
        )  # fmt: skip
        # A form: what was typed last goes with the click, and no rerun comes in between.
        with st.form("new-class", border=False):
            st.text_input(
                "Name", key=TITLE, max_chars=80, placeholder="As the room will read it, such as: Distributed training, group 2"
            )
            fields = [_minutes(lessons[lesson_id], alone=len(chosen) == 1) for lesson_id in chosen]
            st.form_submit_button(
                "Create the class", type="primary", key="new-create", disabled=not chosen, on_click=_create, args=(chosen, fields)
            )


def _minutes(lesson: Lesson, *, alone: bool) -> str:
    """The field's key."""
    key = f"new-minutes-{lesson.id}-{alone}"
    st.number_input(
        f"Minutes for “{lesson.title}”", min_value=1, max_value=LONGEST_MINUTES, step=1,
        value=MINUTES_ALONE if alone else MINUTES_AMONG_OTHERS, key=key,
    )  # fmt: skip
    return key


def _create(lesson_ids: list[str], fields: list[str]) -> None:
    """`fields`: the keys of the minutes; what stands in them is read now, for it came with the click."""
    minutes = [float(st.session_state[field]) for field in fields]
    try:
        made = get_classroom().create(lesson_ids, title=str(st.session_state[TITLE]), plan=minutes)
    except (StoreError, ValueError) as fault:
        say(f"The class could not be made. {fault}")
        return
    st.query_params[CLASS] = made.code


def plan_line(titles: list[str], minutes: list[float]) -> str:
    """The plan in one line of HTML."""
    parts = [f"{escape(title)}, {each:g} min" for title, each in zip(titles, minutes, strict=True)]
    return " · ".join(parts)
