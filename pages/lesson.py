"""The lesson page: question, prediction, run, verdict, explanation. The order of everything; the parts draw it.

Owns what is shown at which stage. What may be shown at all is decided by `lessons.public_view`.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons.attempts import StoreError
from pages.components.focus import focus
from pages.lesson_ask import answered_lines, question, question_form
from pages.lesson_below import below
from pages.lesson_stage import stage
from pages.lesson_state import NOT_HERE, chosen_lesson, current, focus_target, link, view_of
from pages.lesson_tell import tell
from pages.notices import said

lesson = chosen_lesson()
try:
    attempt = current(lesson)
except StoreError as fault:
    st.error(f"{fault} Please reload in a moment.")
    st.stop()
view = view_of(lesson, attempt)
asking = view.stage in ("question", "second_try")

faults = link().faults
if faults:
    text = "; ".join(escape(str(fault)) for fault in faults[:3])
    st.html(f'<p class="pg-link-fault" role="status">A part of this link was left out: {text}</p>')
if link().attempt not in (None, attempt.token):
    st.html(f'<p class="pg-link-fault" role="status">{NOT_HERE}</p>')
sentence = None if asking else said()  # the form has a place of its own for it
if sentence:
    st.html(f'<p class="pg-link-fault" role="alert">{escape(sentence)}</p>')
with st.container(key="lesson"):
    st.html(f'<span class="pg-at" data-stage="{view.stage}"></span>')
    with st.container(key="ask"):
        if asking:
            question(view)
        else:
            answered_lines(view, attempt)
    with st.container(key="stage"):
        stage(lesson, view, attempt)
    with st.container(key="tell"):
        if asking:
            question_form(lesson, view)
        else:
            tell(lesson, view)
asked = st.session_state.pop("asked", None)
target, token = focus_target(view.stage, f"{attempt.token}-{view.stage}-{view.try_no}", asked)
focus(target, token, scroll=target == "at-race")
with st.container(key="below"):
    if view.lesson is not None:
        below(view.lesson, view, attempt, asked)
