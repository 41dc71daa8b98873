"""The right half: the still picture, the prediction, the live lanes and what can be done with them.

Owns the stage's order. The lanes draw themselves and never by rerun; their key never changes, so that they stay mounted.
"""

from __future__ import annotations

from functools import partial
from html import escape

import streamlit as st

from lessons import Lesson
from lessons.attempts import Attempt
from lessons.public_view import PublicView
from pages.components.lanes import lanes
from pages.components.predict_picker import predict_picker
from pages.lesson_controls import NEXT_STEPS, act, controls, experiment_shown, outlook, run_shown
from pages.lesson_moves import outcome, run_own_cause
from scenarios.runs import Run

ASKING = ("question", "predict", "second_try")


def stage(lesson: Lesson, view: PublicView, attempt: Attempt) -> None:
    """Controls above, lanes, what comes below them."""
    run = None if view.stage in ASKING else run_shown(lesson, view, attempt)
    with st.container(key="above"):
        if view.stage == "explained":
            controls(lesson, view, run)
        elif view.stage in ASKING:
            st.html('<h2 class="pg-over">What you see on the node</h2>')
        else:
            st.html(f'<h2 class="pg-over">The run of your cause: {escape(view.causes[0].title)}</h2>')
    _picture(lesson, view, run)
    if view.stage in ASKING:
        _prediction(lesson, view)
    elif view.stage == "explained":
        outlook(lesson, view, run)


def _picture(lesson: Lesson, view: PublicView, run: Run | None) -> None:
    # Until all is told, the lane that the symptom names is set off, whatever the run: its accent gives nothing away.
    asking = view.stage in ASKING
    shown = None if asking else experiment_shown(lesson, view)
    lanes(
        key="lanes", run_id=run.run_id if run else None, replay=_replayed(view, run),
        odd_rank=shown.odd_rank if shown and view.stage == "explained" else 0 if view.still in ("only0", "low0") else None,
        metric=shown.metric if shown else "busy",
        prediction=None if asking else view.prediction, still=view.still if asking else None,
        next_steps=NEXT_STEPS if view.stage == "explained" else (), on_action=partial(act, lesson),
    )


def _replayed(view: PublicView, run: Run | None) -> bool:
    """Whether the picture plays a record: decided when a run is first shown, for a run that ends under the viewer's eyes is none."""
    if run is None:
        return False
    asked_for = st.session_state.get("recording") == run.run_id
    return bool(st.session_state.setdefault(f"replay-{run.run_id}", outcome(run) is not None and (asked_for or view.stage == "run")))


def _prediction(lesson: Lesson, view: PublicView) -> None:
    """Five silhouettes; they wake up once the answer is locked in."""
    waiting = view.stage != "predict"
    with st.container(key="predict"):
        st.html('<h2 class="pg-h" id="at-predict">If your cause is right, what will its run draw?</h2>')
        choice = predict_picker(key=f"prediction-{view.try_no}", selected=None, disabled=waiting)
        if not waiting:
            with st.container(key="go", horizontal=True, vertical_alignment="center"):
                st.button("Run my cause", type="primary", key="run", disabled=choice is None, on_click=run_own_cause, args=(lesson, choice))
                if choice is None:
                    st.html('<p class="pg-note">Pick a picture first; it stays behind the run as a dashed outline.</p>', width="content")
