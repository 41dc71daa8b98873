"""The one button that goes on: with what was left open, what is due, the next lesson, or practice.

Owns where each step leads. What comes next is decided by `lessons.progress`.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons import LessonSet
from lessons.attempts import Attempt
from lessons.learning import get_learning
from lessons.progress import NextStep
from lessons.reviews import Due
from lessons.store import StoreError
from pages.learner import learner
from pages.learner_progress import NEXT_LABEL, due_line, lesson_query
from pages.mystery_moves import MYSTERY
from pages.notices import say


def next_step(step: NextStep, due: Due, lessons: LessonSet, *, level: int = 2) -> None:
    """What it is, and its button."""
    over, title = _words(step, due, lessons)
    st.html(f'<p class="pg-meta">{escape(over)}</p><h{level} id="next-step">{escape(title)}</h{level}>')
    if st.button(NEXT_LABEL[step.kind], type="primary", key="start"):
        go_on(step, lessons)


def go_on(step: NextStep, lessons: LessonSet) -> None:
    """Leave for the page of this step."""
    if step.kind == "review":
        begin_review(lessons)
    elif step.kind == "mystery":
        st.switch_page("mystery.py")
    else:
        st.switch_page("lesson.py", query_params=lesson_query(step))


def begin_review(lessons: LessonSet) -> None:
    """The review under way, or the next one that is due."""
    try:
        item = get_learning().reviews.begin(learner(), lessons)
    except StoreError as fault:
        say(str(fault))
        st.rerun()
    if item is None:
        st.rerun()
    if isinstance(item, Attempt):
        st.switch_page("lesson.py", query_params={"lesson": item.lesson_id, "attempt": item.token})
    st.switch_page("mystery.py", query_params={MYSTERY: item.token})


def _words(step: NextStep, due: Due, lessons: LessonSet) -> tuple[str, str]:
    if step.kind == "review":
        return "Before you forget", due_line(due)
    lesson = lessons.get(step.lesson_id or "")
    if lesson is None:
        return "All lessons done", "Keep in practice with unlabelled runs"
    count = len(lessons.lessons)
    over = f"Lesson 1 of {count}" if step.kind == "start" else "Where you left off" if step.kind == "continue" else "Next"
    return f"{over} · {lesson.topic} · {lesson.minutes} min", lesson.title
