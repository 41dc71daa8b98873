"""The evidence table: what each experiment's recording says, and whether it matches the question.

Owns the table's look; the figures come from `lessons.evidence`, from recordings only.
"""

from __future__ import annotations

import streamlit as st

from lessons import Lesson
from lessons.attempts import Attempt


def evidence(lesson: Lesson, attempt: Attempt) -> None:
    """The table and its button."""
    st.html('<h2 class="sl-h" id="evidence">Evidence</h2>')
