"""The right half: the still picture, the prediction, the live lanes and what can be done with them.

Owns the stage's controls. The lanes draw themselves and never by rerun; their key never changes, so that they stay mounted.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from lessons import Lesson
from lessons.attempts import Attempt
from lessons.public_view import PublicView
from pages.components.lanes import lanes, predict_picker
from pages.lesson_controls import after_verdict_controls, cause_id_shown, run_shown
from pages.lesson_moves import ended, run_own_cause
from scenarios.catalog import SCENARIOS


def stage(lesson: Lesson, view: PublicView, attempt: Attempt | None) -> None:
    """Controls above, lanes, what comes below them."""
    explained = view.stage == "explained"
    if explained:
        after_verdict_controls(lesson, view, attempt)
    elif view.stage in ("run", "verdict"):
        st.html(f'<p class="sl-meta">The run of your cause: <b>{view.causes[0].title}</b></p>')
    else:
        st.html('<h2 class="sl-over">What you see on the node</h2>')
    _lanes(lesson, view, attempt)
    if view.stage in ("question", "predict", "second_try"):
        _prediction(lesson, view)


def _lanes(lesson: Lesson, view: PublicView, attempt: Attempt | None) -> None:
    asking = view.stage in ("question", "predict", "second_try")
    run_id = None if asking or attempt is None else run_shown(lesson, view, attempt)
    scenario = None if asking else _scenario(lesson, view)
    result: Any = lanes(
        key="lanes", run_id=run_id, replay=False,
        odd_rank=(0 if view.still in ("only0", "low0") else None) if asking else SCENARIOS[scenario].odd_rank if scenario else None,
        metric="busy" if scenario is None else SCENARIOS[scenario].opening_metric,
        prediction=None if asking else view.prediction, still=view.still if asking else None,
    )
    if getattr(result, "ended", None):
        ended(lesson)


def _scenario(lesson: Lesson, view: PublicView) -> str:
    cause = lesson.cause(cause_id_shown(view))
    return cause.scenario if cause else lesson.fix


def _prediction(lesson: Lesson, view: PublicView) -> None:
    """Five silhouettes; they wake up once the answer is locked in."""
    waiting = view.stage != "predict"
    with st.container(key="predict-waiting" if waiting else "predict"):
        st.html('<h2 class="sl-h" id="at-predict">If your cause is right, what will its run draw?</h2>')
        choice = predict_picker(key=f"prediction-{view.try_no}", selected=None, disabled=waiting)
        if not waiting:
            with st.container(key="go", horizontal=True, vertical_alignment="center"):
                st.button("Run my cause", type="primary", key="run", disabled=choice is None, on_click=run_own_cause, args=(lesson, choice))
                if choice is None:
                    st.html('<p class="sl-note">Pick a picture first; it stays behind the run as a dashed outline.</p>', width="content")
