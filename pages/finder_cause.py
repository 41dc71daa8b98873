"""One cause of the symptom finder: why it fits or does not, how to confirm it on one's own cluster, the lesson, the fix.

Owns what is inside a cause that is opened. Must not rank.
"""

from __future__ import annotations

from functools import lru_cache
from html import escape

import streamlit as st

from lessons import load_lessons
from lessons.code_diff import scenario_diff
from lessons.exchange.item import html_of_line
from lessons.symptoms import Ranked, Reason
from lessons.symptoms.about import lesson_about
from pages.components.code import diff_html
from pages.lab_link import LabLink

_SIDES = {
    "fits": ("✓", "pg-right", "fits"), "against": ("✗", "pg-wrong", "speaks against it"), "open": ("·", "pg-muted", "says little here"),
}


def cause_inside(one: Ranked) -> None:
    """Everything about a cause, in the order in which it is needed on call."""
    cause = one.cause
    st.html(f'<p class="pg-telltale">{html_of_line(cause.telltale)}</p>{reasons_html(one.reasons)}')
    st.html(f'<h3>Confirm it on your cluster</h3><p class="pg-note">{html_of_line(cause.confirm)}</p>')
    st.code(cause.command.command, language=None, wrap_lines=True)  # the highlighter's colours are too pale
    st.html(
        f'<p class="pg-note"><b class="pg-right">✓ healthy</b></p><pre class="pg-out pg-well">{escape(cause.command.healthy.strip())}</pre>'
        f'<p class="pg-note"><b class="pg-wrong">✗ this cause</b></p><pre class="pg-out pg-ill">{escape(cause.command.ill.strip())}</pre>'
    )
    st.html(f'<h3>The fix</h3><p class="pg-prose">{html_of_line(cause.fix)}</p>{fix_html(cause.id, *_scripts(one))}')
    with st.container(key=f"finder-links-{cause.id}", horizontal=True, gap="medium"):
        lesson = lesson_about(cause, load_lessons())
        if lesson is not None:
            st.page_link("lesson.py", label=f"Lesson: {lesson.title}", query_params={"lesson": lesson.id})
        if cause.experiment is not None:
            st.page_link("lab.py", label="Watch it run in the lab", query_params=LabLink().with_config(cause.experiment).query())
    if cause.no_experiment:
        st.html(f'<p class="pg-note">No run shows this here. {escape(cause.no_experiment)}</p>')


def reasons_html(reasons: tuple[Reason, ...]) -> str:
    """One row per answer; what speaks against comes with what this cause would show instead."""
    if not reasons:
        return ""
    order = {"fits": 0, "against": 1, "open": 2}
    rows = "".join(_reason(reason) for reason in sorted(reasons, key=lambda reason: order[reason.side]))
    return f'<ul class="pg-reasons">{rows}</ul>'


def _reason(reason: Reason) -> str:
    mark, colour, word = _SIDES[reason.side]
    because = html_of_line(reason.because) if reason.because else "This cause leaves no trace in it."
    instead = ""
    if reason.side == "against" and reason.expected:
        instead = f' Expected: <b>{escape(" or ".join(text.lower() for text in reason.expected[:2]))}</b>.'
    return (
        f'<li><b class="{colour}" aria-hidden="true">{mark}</b><span><b>{escape(reason.answer)}</b> '
        f'<i>{word}.</i> {because}{instead}</span></li>'
    )


def _scripts(one: Ranked) -> tuple[str, str]:
    experiment = one.cause.experiment
    return ("", "") if experiment is None else (experiment.scenario, one.cause.healthy.scenario)


@lru_cache(maxsize=64)
def fix_html(cause_id: str, ill: str, healthy: str) -> str:
    """The difference of the two scripts; empty where it is not in the code."""
    if ill == healthy:
        return "" if not ill else '<p class="pg-note">The script is the same with and without it: the difference is not in the code.</p>'
    return diff_html(scenario_diff(ill, healthy), left=f"{ill}.py", right=f"{healthy}.py, the fix")
