"""What a mystery run was, once its cause is named: the verdict, the figures that tell it, and where to go on.

Owns the words of the verdict. Must not be reached before the answer is given.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons import load_lessons
from lessons.causes import cause_of_lesson
from lessons.mystery import MysteryVerdict, MysteryView
from pages.components.marks import earned
from pages.lab_link import LabLink, described
from pages.mystery_moves import begin


def tell(view: MysteryView) -> None:
    """The verdict, then what tells such a run, then the next step."""
    verdict = view.verdict
    assert verdict is not None
    st.html(f'<div id="at-graded">{_verdict_html(verdict)}{_figure_html(verdict)}</div>')
    items = "".join(f"<li><b>{escape(told.label)}.</b> {escape(told.why)}</li>" for told in verdict.telling)
    if items:
        st.html(f'<div class="pg-prose"><h3>What tells it</h3><ul>{items}</ul></div>')
    st.html(f'<p class="pg-note">It was: {escape(described(verdict.config))}.</p>')
    with st.container(key="next", horizontal=True, vertical_alignment="center"):
        st.button("Another one", type="primary", key="another", on_click=begin)
        st.page_link("lab.py", label="Open in the lab", query_params=_lab(view, verdict))
        lesson_id = next((lesson.id for lesson in load_lessons().lessons if cause_of_lesson(lesson) == verdict.cause), None)
        if lesson_id is not None:
            st.page_link("lesson.py", label="Its lesson", query_params={"lesson": lesson_id})


def _lab(view: MysteryView, verdict: MysteryVerdict) -> dict[str, str]:
    return LabLink(run=view.run_id).with_config(verdict.config).query()


def _verdict_html(verdict: MysteryVerdict) -> str:
    name = escape(verdict.name)
    if verdict.right:
        return f'<p class="pg-answer"><b class="pg-right">✓ Right{earned(verdict.marks)}</b> <span>{name}</span></p>'
    if verdict.named is None:
        return f'<p class="pg-answer"><span>It was: <b>{name}</b></span></p>'
    return (
        f'<p class="pg-answer"><b class="pg-wrong">✗ Not this one{earned(verdict.marks)}</b> '
        f"<span>You: “{escape(verdict.named)}”</span></p>"
        f'<p class="pg-prose">It was: <b>{name}</b></p>'
    )


def _figure_html(verdict: MysteryVerdict) -> str:
    """Whether the figure that the learner went by can tell this cause."""
    if verdict.figure is None:
        return ""
    label, why = escape(verdict.figure.label), escape(verdict.figure.why)
    if verdict.figure.tells:
        return f'<p class="pg-note"><b class="pg-right">✓</b> {label} does tell it.</p>'
    return f'<p class="pg-note">{label} does not tell this one apart. {why}</p>'
