"""Below the classes: which exam domains the course covers, and how questions come and go.

Owns these two. Questions with their answers are exported on the server, by command: a page that anyone may open holds no key.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons import load_lessons
from lessons.exchange import Coverage, coverage

COMMANDS = (
    ("Questions with feedback for Moodle", "python -m lessons export --format moodle -o shardlab.xml"),
    ("The same as GIFT", "python -m lessons export --format gift -o shardlab.gift"),
    ("Questions from Moodle XML or GIFT, as the beginnings of lessons", "python -m lessons import questions.xml --into my-lessons"),
    ("Every answer given on this server, as CSV", "python -m lessons export --format csv-answers -o answers.csv"),
    ("A lesson of your own: begin, look at it, check it, run its claims", "python -m lessons new my-lessons/slow-disk"),
)


def below() -> None:
    """Coverage, then commands."""
    st.html('<h2 class="pg-h" id="at-coverage">What the course covers</h2>')
    table = coverage(load_lessons().lessons)
    st.html(coverage_html(table))
    st.html(f'<p class="pg-note">{escape(" ".join(table.sentences))}</p>')
    st.html(
        '<h2 class="pg-h">Questions in and out</h2><p class="pg-note">On the server, for they hold the answers. The page “Write a '
        "lesson” in docs/write-a-lesson.md goes from nothing to a lesson with claims; no Python is needed.</p>"
    )
    for title, command in COMMANDS:
        st.html(f'<p class="pg-note">{escape(title)}</p>')
        st.code(command, language=None, wrap_lines=True)


def coverage_html(table: Coverage) -> str:
    """Lessons by domains; the first column and the head stay readable on a phone."""
    head = "".join(f"<th scope=col>{escape(domain)}</th>" for domain in table.domains)
    rows = "".join(
        f"<tr><th scope=row>{escape(row.title)}</th>"
        + "".join(
            f'<td data-label="{escape(domain)}">{"✓" if covered else "–"}</td>'
            for domain, covered in zip(table.domains, row.covers, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    counts = "".join(
        f'<td data-label="{escape(domain)}">{count}</td>' for domain, count in zip(table.domains, table.counts, strict=True)
    )
    return (
        '<div class="pg-table" role="region" aria-labelledby="at-coverage" tabindex="0">'
        f"<table><thead><tr><th scope=col>Lesson</th>{head}</tr></thead><tbody>{rows}"
        f"<tr><th scope=row>Lessons in all</th>{counts}</tr></tbody></table></div>"
    )
