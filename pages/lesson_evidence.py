"""The evidence table: what each experiment's recording says, and whether it matches the question.

Owns the table's look; its content is `lessons.evidence`, from recordings only.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons import Lesson
from lessons.attempts import Attempt
from lessons.evidence import COLUMNS, EvidenceRow, default_config, recorded_causes
from lessons.evidence import evidence as evidence_rows
from pages.lesson_runs import measure, missing
from scenarios.runs import get_runs


@st.fragment
def evidence(lesson: Lesson, attempt: Attempt) -> None:
    """The table, and one button that runs what has not been recorded here yet."""
    configs = {cause.title: default_config(cause.scenario) for cause in lesson.causes}
    gaps = len(missing(list(configs.values())))
    st.html('<h2 class="pg-h" id="at-evidence">Evidence: every cause, by its own run</h2>')
    with st.container(key="evidence-tools", horizontal=True, vertical_alignment="center", gap="small"):
        asked = st.button("Run all" if gaps else "Run all again", key="run-all", type="primary" if gaps else "secondary")
        said = f"{gaps} of {len(configs)} causes have no recording here yet." if gaps else "Filled from recordings made on this server."
        st.html(f'<p class="pg-note">{said} All at the default knobs.</p>', width="content")
    table = st.empty()
    def draw() -> None:
        table.html(table_html(evidence_rows(lesson, recorded_causes(lesson, get_runs()))))

    draw()
    if asked and measure(configs, viewer=attempt.token, afresh=not gaps, on_change=draw):
        st.rerun(scope="fragment")


def table_html(rows: tuple[EvidenceRow, ...]) -> str:
    """One row per cause; the one that matches the question is marked by a word, a tick and a line."""
    head = "".join(f"<th scope=col>{escape(column)}</th>" for column in COLUMNS)
    body = "".join(_row(row) for row in rows)
    return (
        '<div class="pg-table" role="region" aria-labelledby="at-evidence" tabindex="0">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(row: EvidenceRow) -> str:
    texts = row.texts
    if not row.measured:
        return f"<tr><th scope=row>{escape(texts[0])}</th><td colspan={len(COLUMNS) - 1} class=pg-none>{escape(texts[1])}</td></tr>"
    cells = "".join(f'<td data-label="{escape(name)}">{escape(text)}</td>' for name, text in zip(COLUMNS[1:-1], texts[1:-1], strict=True))
    mark = f'<b class="pg-right">✓ {escape(texts[-1])}</b>' if row.matches else escape(texts[-1])
    cells += f'<td data-label="{COLUMNS[-1]}">{mark}</td>'
    return f'<tr class="{"pg-match" if row.matches else ""}"><th scope=row>{escape(texts[0])}</th>{cells}</tr>'
