"""What can be done with runs once the verdict is known: another cause, again, stop, knobs, and what the picture itself asks for.

Owns which run is shown. Must not draw lanes.
"""

from __future__ import annotations

from html import escape
from typing import Any

import streamlit as st

from lessons import Lesson
from lessons.attempts import Attempt
from lessons.experiments import Shown, cause_of, shown_as
from lessons.public_view import PublicView
from pages.lab_link import LabLink
from pages.lesson_knobs import knobs, knobs_popover
from pages.lesson_moves import FIX, choose_cause, ended, outcome, start_run, stop, watch_recording
from pages.lesson_state import found, link, view_of
from scenarios.record import summary_of
from scenarios.runs import Run, get_runs

NEXT_STEPS = (("race", "Race the three"), ("fix", "Apply the fix"), ("figure", "Open as figure"))
"""Ids and labels of what a finished run offers."""


def cause_id_shown(lesson: Lesson, view: PublicView) -> str:
    """What is on the stage: the URL's run or cause where that is allowed, else the answer's own cause."""
    if view.stage != "explained":
        return view.causes[0].id
    run = _linked_run()
    if run is not None:
        return cause_of(lesson, run.config, preferred=link().cause) or FIX
    if st.session_state.get(FIX):
        return FIX
    return link().cause or (view.causes[0].id if view.answer else lesson.key.causes[0])


def experiment_shown(lesson: Lesson, view: PublicView) -> Shown:
    """The experiment on the stage."""
    return shown_as(lesson, cause_id_shown(lesson, view))


def run_shown(lesson: Lesson, view: PublicView, attempt: Attempt) -> Run | None:
    """The run on the stage; None where there is none yet."""
    run = _linked_run() if view.stage == "explained" else None
    if run is None:
        run_id = attempt.runs.get(cause_id_shown(lesson, view))
        run = get_runs().get(run_id) if run_id else None
    return run


def _linked_run() -> Run | None:
    run_id = link().run
    return get_runs().get(run_id) if run_id else None


def act(lesson: Lesson) -> None:
    """What the picture asked for: called before the rerun that it causes."""
    asked: Any = st.session_state.get("lanes", {}).get("action") or {}
    attempt = found(lesson) if asked else None
    if attempt is None or not attempt.stored:
        return
    view = view_of(lesson, attempt)
    action, run_id = asked.get("action"), asked.get("run_id")
    if action == "ended":
        ended(lesson, run_id)
    elif action in ("run", "run_again"):
        start_run(lesson, cause_id_shown(lesson, view), knobs())
    elif action == "stop" and run_id:
        stop(lesson, run_id)
    elif action == "watch_recording" and asked.get("recording"):
        watch_recording(lesson, cause_id_shown(lesson, view), asked["recording"])
    elif view.stage == "explained" and action in dict(NEXT_STEPS):
        st.session_state["asked"] = action


def controls(lesson: Lesson, view: PublicView, run: Run | None) -> None:
    """Cause selector, run again, knobs: one row above the lanes. Stop and Pause are the picture's own."""
    titles = {cause.id: cause.title for cause in view.causes} | {FIX: f"The healthy script: {shown_as(lesson, FIX).title}"}
    shown = cause_id_shown(lesson, view)
    going = run is not None and outcome(run) is None
    with st.container(key="controls", horizontal=True, vertical_alignment="center", gap="small"):
        st.selectbox(
            "Cause", list(titles), index=list(titles).index(shown), format_func=titles.__getitem__, key=f"cause-{shown}",
            on_change=choose_cause, args=(f"cause-{shown}",), label_visibility="collapsed", width="stretch",
        )
        if run is not None:  # without one the picture itself offers it
            st.button("Run again", key="again-run", disabled=going, on_click=start_run, args=(lesson, shown, knobs()))
        knobs_popover(lesson, shown)


def downloads(run: Run) -> None:
    """The run as data."""
    base = f"/{str(st.get_option('server.baseUrlPath') or '').strip('/')}".rstrip("/") + f"/runs/{run.run_id}"
    st.html(
        f'<p class="pg-note">This run as data: <a href="{base}/samples.csv" download>samples (CSV)</a>, '
        f'<a href="{base}/trace.json" download>trace (Perfetto)</a></p>', width="content",
    )


def open_in_the_lab(run: Run) -> None:
    """The same run where every knob can be turned."""
    st.page_link("lab.py", label="Open in the lab", query_params=LabLink(run=run.run_id).with_config(run.config).query())


def outlook(lesson: Lesson, view: PublicView, run: Run | None) -> None:
    """Under the lanes: the rest of an epoch that was too long to watch, and the other half of the answer."""
    summary = (summary_of(run.run_dir) if run is not None and outcome(run) == "finished" else None) or {}
    cause_shown = next((cause for cause in view.causes if cause.id == cause_id_shown(lesson, view)), None)
    with st.container(key="outlook", horizontal=True, vertical_alignment="center", gap="small"):
        if run is not None and summary.get("epoch_seconds") and not summary.get("epoch_measured"):
            seen, epoch_s = 100 * summary["epochs_seen"], summary["epoch_seconds"]
            st.html(f'<p class="pg-note">{seen:.0f} % of the epoch; at this rate it takes {epoch_s:.0f} s.</p>', width="content")
            st.button(
                "Fast-forward", key="fast-forward", icon=":material/fast_forward:", on_click=start_run,
                args=(lesson, cause_id_shown(lesson, view), {**knobs(), "epochs": 1}, "fast"),
            )
        if run is not None and outcome(run) is not None:
            downloads(run)
            open_in_the_lab(run)
        if cause_shown is not None and cause_shown.id in lesson.key.causes:
            for half in (cause for cause in view.causes if cause.id in lesson.key.causes and cause != cause_shown):
                st.button(f"Run the other half: {half.title}", key=f"half-{half.id}", on_click=start_run, args=(lesson, half.id))
    if cause_shown is not None and run is not None and outcome(run) is not None:
        st.html(f'<p class="pg-note">{escape(cause_shown.shows)} {escape(cause_shown.note)}</p>')
