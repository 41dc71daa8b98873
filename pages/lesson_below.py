"""Below the fold, once all is told: the race, the evidence, and what the picture's buttons ask for.

Owns the order of these. Must not be reached before the stage `explained`.
"""

from __future__ import annotations

import streamlit as st

from lessons import Lesson
from lessons.attempts import Attempt
from lessons.public_view import PublicView
from pages.lesson_controls import experiment_shown, run_shown
from pages.lesson_evidence import evidence
from pages.lesson_race import figure_dialog, race
from pages.lesson_tell import fix_dialog, ill_experiment


def below(lesson: Lesson, view: PublicView, attempt: Attempt, asked: str | None) -> None:
    """Race (once `asked` for), evidence, dialogs."""
    run = run_shown(lesson, view, attempt)
    if st.session_state.get("races"):
        race(lesson, attempt)
    evidence(lesson, attempt)
    if asked == "fix":
        fix_dialog(lesson, ill_experiment(lesson, view))
    elif asked == "figure" and run is not None:
        shown = experiment_shown(lesson, view)
        figure_dialog(run, opens_on=shown.metric, odd_rank=shown.odd_rank)
