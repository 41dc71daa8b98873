"""The evidence table: what each experiment's recording says, and whether it matches the question.

Owns the table's look; its content is `lessons.evidence`, from recordings only.
"""

from __future__ import annotations

import re
from html import escape

import streamlit as st

from lessons import Lesson
from lessons.attempts import Attempt
from lessons.evidence import EvidenceRow, headings, recorded_causes
from lessons.evidence import evidence as evidence_rows
from pages.components.source_words import told
from pages.lesson_runs import measure, missing
from scenarios.runs import get_runs


@st.fragment
def evidence(lesson: Lesson, attempt: Attempt) -> None:
    """The table, and one button that runs what has not been recorded here yet."""
    configs = {cause.title: lesson.config_of(cause.scenario) for cause in lesson.causes}
    gaps = len(missing(list(configs.values())))
    st.html('<h2 class="pg-h" id="at-evidence">Evidence: every cause, by its own run</h2>')
    with st.container(key="evidence-tools", horizontal=True, vertical_alignment="center", gap="small"):
        asked = st.button("Run all" if gaps else "Run all again", key="run-all", type="primary" if gaps else "secondary")
        source = told(row.source for row in evidence_rows(lesson, recorded_causes(lesson, get_runs())))
        filled = f"Filled from recordings made on this server, {source}."
        said = f"{gaps} of {len(configs)} causes have no recording here yet." if gaps else filled
        st.html(f'<p class="pg-note">{said} All as the lesson runs them, without your knobs.</p>', width="content")
    table = st.empty()
    def draw() -> None:
        table.html(table_html(headings(lesson), evidence_rows(lesson, recorded_causes(lesson, get_runs()))))

    draw()
    if asked and measure(configs, viewer=attempt.token, afresh=not gaps, on_change=draw):
        st.rerun(scope="fragment")


def table_html(columns: tuple[str, ...], rows: tuple[EvidenceRow, ...]) -> str:
    """One row per cause; the one that matches the question is marked by a word, a tick and a line."""
    head = "".join(f"<th scope=col>{escape(column)}</th>" for column in columns)
    body = "".join(_row(columns, row) for row in rows)
    return (
        '<div class="pg-table" role="region" aria-labelledby="at-evidence" tabindex="0">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(columns: tuple[str, ...], row: EvidenceRow) -> str:
    head = f"<th scope=row>{escape(row.head)}</th>"
    if not row.measured:
        return f"<tr>{head}<td colspan={len(columns) - 1} class=pg-none>{escape(row.match)}</td></tr>"
    cells = "".join(
        f'<td data-label="{escape(name)}">{_cell(text)}</td>' for name, text in zip(columns[1:-1], row.cells, strict=True)
    )
    mark = f'<b class="pg-right">✓ {escape(row.match)}</b>' if row.matches else escape(row.match)
    cells += f'<td data-label="{escape(columns[-1])}">{mark}</td>'
    return f'<tr class="{"pg-match" if row.matches else ""}">{head}{cells}</tr>'


def _cell(text: str) -> str:
    """A figure and its unit stay on one line."""
    return escape(re.sub(r"(?<=\d) (?=%|(?:W|GiB|s)\b)", "\u00a0", text))
