"""The left half after lock-in: what comes next, the verdict, and the explanation in tabs.

Owns the order of texts. Nothing of the key is shown before the stage `explained`.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons import Lesson, OwnJobCheck, Prose
from lessons.public_view import PublicView
from pages.lesson_moves import show_answer, try_again

LEGEND = (
    ("outline", "outline", "busy, as nvidia-smi counts it"),
    ("solid", "solid", "useful work"),
    ("hatched", "hatched", "busy, but waiting for another rank"),
    ("empty", "empty", "idle"),
)


def tell(lesson: Lesson, view: PublicView) -> None:
    """What the left half says at this stage."""
    if view.stage == "predict":
        st.html('<p class="sl-note">Next: what would the run of your cause draw, if you are right? Choose one of the five pictures.</p>')
        _escape(lesson)
    elif view.stage == "run":
        rows = "".join(f"<li><b>{name}</b> {escape(what)}</li>" for _, name, what in LEGEND)
        st.html(
            '<h2 class="sl-h" id="at-run">Your cause is running</h2>'
            f'<p class="sl-note">Compare it with the dashed outline, your prediction. The verdict comes when it ends.</p>'
            f'<ul class="sl-legend">{rows}</ul>'
        )
        _escape(lesson)
    elif view.stage == "verdict":
        st.html('<h2 class="sl-h" id="at-verdict">Its own run speaks against it</h2>')
        prose(view.judged[-1].verdict.rebuttal)
        with st.container(key="next", horizontal=True, vertical_alignment="center"):
            st.button("Try again", type="primary", key="again", on_click=try_again, args=(lesson,))
            st.button("Show the answer now", type="tertiary", key="escape", on_click=show_answer, args=(lesson,))
    elif view.lesson is not None:
        explanation(view.lesson, view)


def _escape(lesson: Lesson) -> None:
    st.button("Show the answer now", type="tertiary", key="escape", on_click=show_answer, args=(lesson,))


def prose(text: Prose) -> None:
    """A text of a lesson; it was sanitised when it was loaded."""
    st.html(f'<div class="sl-prose">{text.html}</div>')


def explanation(lesson: Lesson, view: PublicView) -> None:
    """The five tabs."""
    st.html('<span id="at-explained"></span>')
    why, story, each, code, own = st.tabs(["Why", "Full story", "Each option", "Code", "On your own job"], key="tabs")
    with why:
        prose(lesson.why)
        st.html(f'<div class="sl-infographic">{lesson.infographic}</div>')
        st.html(f'<section class="sl-box"><h3>In the exam</h3><div class="sl-prose">{lesson.exam_box.html}</div></section>')
        st.html(f'<section class="sl-box"><h3>On call: check these first</h3><div class="sl-prose">{lesson.on_call_box.html}</div></section>')
    with story:
        prose(lesson.full_story)
        items = "".join(f'<li><a href="{escape(s.url)}">{escape(s.title)}</a>: {escape(s.says)}</li>' for s in lesson.sources)
        st.html(f'<div class="sl-prose"><h3>Sources</h3><ul>{items}</ul></div>')
    with each:
        for option in lesson.options:
            mark = '<b class="sl-right">✓ Right</b>' if option.right else '<b class="sl-wrong">✗</b>'
            st.html(f'<div class="sl-prose sl-option"><h3>{mark} {escape(option.text)}</h3>{option.rebuttal.html}</div>')
    with code:
        st.write("Code")
    with own:
        for check in lesson.on_your_own_job:
            own_job(check)
        st.html(f'<div class="sl-prose"><h3>What to try</h3>{lesson.what_to_try.html}</div>')


def own_job(check: OwnJobCheck) -> None:
    """One command, with what it prints when all is well and when it is not."""
    st.html(f'<div class="sl-prose"><h3>{escape(check.title)}</h3>{check.why.html}</div>')
    st.code(check.command, language="bash" if check.language == "sh" else "python", wrap_lines=True)
    healthy, ill = st.columns(2)
    with healthy:
        st.html('<p class="sl-meta"><b class="sl-right">✓</b> healthy</p>')
        st.code(check.healthy, language=None)
    with ill:
        st.html('<p class="sl-meta"><b class="sl-wrong">✗</b> ill</p>')
        st.code(check.ill, language=None)
