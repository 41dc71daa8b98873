"""Where to go on once a lesson is explained: one button, as on the course page.

Owns the row under the explanation. What comes next is decided by `lessons.progress`.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons import load_lessons
from lessons.store import StoreError
from pages.learner_progress import due_line, progress
from pages.next_step import go_on


def lesson_next() -> None:
    """The next lesson, what is due, or practice; the course is one link away in any case."""
    lessons = load_lessons()
    try:
        mine = progress(lessons)
    except StoreError:  # the page has said so already
        return
    following = lessons.get(mine.next.lesson_id or "")
    text = f"Next: {following.title}" if following else due_line(mine.due) if mine.next.kind == "review" else "Next: a run without a label"
    with st.container(key="lesson-next", horizontal=True, vertical_alignment="center", gap="small"):
        st.html(f'<p class="pg-note">{escape(text)}</p>', width="content")
        if st.button("Go on", key="go-on"):
            go_on(mine.next, lessons)
        st.page_link("course.py", label="The course")
