"""What can be done with runs once the verdict is known: another cause, again, stop, knobs, the fix, the race.

Owns which run is shown. Must not draw lanes.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from lessons import Lesson
from lessons.attempts import Attempt
from lessons.public_view import PublicView
from pages.lesson_moves import FIX, choose_cause, start_run, stop
from pages.lesson_state import CAUSE, RUN
from scenarios.catalog import SCENARIOS
from scenarios.runs import get_runs


def cause_id_shown(view: PublicView) -> str:
    """The cause whose run is on the stage: the URL's where that is allowed, else the answer's own."""
    wanted = st.query_params.get(CAUSE, "")
    if view.stage == "explained" and (wanted == FIX or any(cause.id == wanted for cause in view.causes)):
        return wanted
    return view.causes[0].id


def run_shown(lesson: Lesson, view: PublicView, attempt: Attempt) -> str | None:
    """The id of the run on the stage; None where there is none yet."""
    if view.stage == "explained" and RUN in st.query_params and get_runs().get(st.query_params[RUN]) is not None:
        return st.query_params[RUN]
    return attempt.runs.get(cause_id_shown(view))


def after_verdict_controls(lesson: Lesson, view: PublicView, attempt: Attempt | None) -> None:
    """Cause selector, run again, stop, knobs."""
    titles = {cause.id: cause.title for cause in view.causes} | {FIX: f"Healthy: {SCENARIOS[lesson.fix].title}"}
    shown = cause_id_shown(view)
    run_id = run_shown(lesson, view, attempt) if attempt else None
    run = get_runs().get(run_id) if run_id else None
    with st.container(key="controls", horizontal=True, vertical_alignment="bottom", gap="small"):
        st.selectbox(
            "Cause", list(titles), index=list(titles).index(shown), format_func=titles.__getitem__, key="cause",
            on_change=choose_cause, args=(lesson,), label_visibility="collapsed",
        )
        going = run is not None and not run.over
        st.button("Run again" if run_id else "Run", type="secondary", key="again-run", on_click=start_run, args=(lesson, shown, knobs(lesson)))
        if going:
            st.button("Stop", key="stop", on_click=stop, args=(lesson, run_id))


def knobs(lesson: Lesson) -> dict[str, Any]:
    return {}
