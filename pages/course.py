"""The course: what comes next, every lesson by its part, and what is due.

Owns the list. Titles are neutral: nothing here names a cause.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons import load_lessons
from lessons.progress import LessonProgress, Progress
from lessons.store import StoreError
from pages.components.marks import marks_line, signed
from pages.learner_progress import due_line, progress
from pages.next_step import begin_review, next_step
from pages.notices import said

STATES = {"done": ("✓", "done"), "open": ("◐", "begun"), "new": ("○", "new")}


def page() -> None:
    """Next step and reviews beside each other, the lessons below."""
    lessons = load_lessons()
    try:
        mine = progress(lessons)
    except StoreError as fault:
        st.error(f"{fault} Please reload in a moment.")
        st.stop()
    with st.container(key="course"):
        st.html(f'<h1>The course</h1><p class="pg-note">{_standing(mine)}</p>')
        sentence = said()
        if sentence:
            st.html(f'<p class="pg-said" role="alert">{escape(sentence)}</p>')
        with st.container(key="course-now"):
            with st.container(key="course-next", border=True):
                next_step(mine.next, mine.due, lessons)
            with st.container(key="course-due", border=True):
                _reviews(mine)
        for stage in dict.fromkeys(each.stage for each in mine.lessons):
            st.html(f'<h2 class="pg-h">{escape(stage or "More lessons")}</h2>')
            with st.container(key=f"course-{stage or 'more'}"):
                for each in mine.lessons:
                    if each.stage == stage:
                        _row(each)


def _standing(mine: Progress) -> str:
    total = f"{mine.done} of {len(mine.lessons)} lessons done"
    if not mine.answers:
        return f"{total}. Answer, predict, watch the run: about six minutes each."
    return f"{total} · {marks_line(mine.marks, mine.answers)}"


def _reviews(mine: Progress) -> None:
    st.html(f'<p class="pg-meta">Reviews</p><h2>{escape(due_line(mine.due)) if mine.due.count else "Nothing is due"}</h2>')
    if mine.due.count and mine.next.kind != "review":
        if st.button("Begin the review", key="review"):
            begin_review(load_lessons())
    elif not mine.due.count:
        st.html(f'<p class="pg-note">{escape(due_line(mine.due).removeprefix("Nothing is due. "))}</p>')
    st.page_link("mystery.py", label="Practise with a mystery run")


def _row(each: LessonProgress) -> None:
    """One lesson: its state in a mark and a word, its title as the link, its marks."""
    mark, word = STATES[each.state]
    query = {"lesson": each.lesson_id, **({"attempt": each.attempt} if each.attempt else {})}
    with st.container(key=f"row-{each.lesson_id}", horizontal=True, vertical_alignment="center", gap="small"):
        st.html(f'<span class="pg-state pg-{each.state}" title="{word}">{mark}</span>', width="content")
        st.page_link("lesson.py", label=each.title, query_params=query)
        marks = "" if each.marks is None else f" · {signed(each.marks)}"
        st.html(f'<span class="pg-note">{escape(each.topic)} · {each.minutes} min · {word}{marks}</span>', width="content")


page()
