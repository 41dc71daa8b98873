"""What buttons do: each move reads the attempt afresh and changes it in the store, so that two tabs and a reload agree.

Owns the callbacks. Must not draw anything.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import streamlit as st

from lessons import Lesson, Silhouette
from lessons.attempts import Attempt, Certainty, StaleAttempt
from lessons.deep_links import CAUSE, RUN
from lessons.experiments import cause_of
from lessons.grading import Stake
from pages.learner import learner
from pages.lesson_state import found, move, store, view_of
from pages.notices import say
from scenarios.config import RunConfig
from scenarios.record import end_of
from scenarios.runs import QueueFull, Run, get_runs

FIX = "fix"
"""Stands where a cause would: the healthy script."""


def lock_in(lesson: Lesson, number: int, shown: tuple[Stake, ...]) -> None:
    """The form's button, of the try with this number and these stakes.

    Another tab may have gone on to the second try, which must not be used up here, or answered another lesson: marks can be lost then.
    """
    option, certainty = st.session_state.get(f"option-{lesson.id}-{number}"), st.session_state.get(f"sure-{lesson.id}-{number}")
    if option is None or certainty is None:
        say("Choose an answer first." if option is None else "Say how sure you are.")
        return

    def answer(attempt: Attempt) -> Attempt:
        if attempt.stage not in ("question", "second_try") or attempt.try_no != number:
            raise StaleAttempt(attempt)
        if view_of(lesson, attempt).stakes != shown:
            raise ValueError("You have answered elsewhere meanwhile: what this answer can win or lose has changed. Please lock in again.")
        return store().lock_in(attempt, lesson, option, cast(Certainty, certainty), learner=learner())

    move(lesson, answer)


def run_own_cause(lesson: Lesson, prediction: str | None) -> None:
    """predict -> run: the prediction is kept, the run of the answer's cause begins."""
    attempt = move(lesson, lambda attempt: store().predict(attempt, cast(Silhouette | None, prediction)))
    if attempt is not None:
        start_run(lesson, view_of(lesson, attempt).causes[0].id)


def start_run(lesson: Lesson, cause_id: str, knobs: dict[str, Any] | None = None, pace: Literal["live", "fast"] = "live") -> None:
    """A fresh run of this cause (or of the healthy script) becomes what the stage shows."""
    attempt = found(lesson)
    if attempt is None or not attempt.stored:
        return
    cause = lesson.cause(cause_id)
    run = _begin(lesson.config_of(lesson.fix if cause is None else cause.scenario, knobs), attempt, pace)
    if run is None:
        return
    if cause is not None and move(lesson, lambda attempt: store().record_run(attempt.token, lesson, cause_id, run.run_id)) is None:
        return
    if attempt.stage == "explained":
        show_run(cause_id, run.run_id)


def _begin(config: RunConfig, attempt: Attempt, pace: Literal["live", "fast"]) -> Run | None:
    try:
        return get_runs().start(config, viewer=attempt.token, pace=pace)
    except QueueFull as full:
        say(str(full))
        return None


def ended(lesson: Lesson, run_id: str | None) -> None:
    """The run has been watched to its end: the verdict and, where no try is left, the explanation.

    A run that did not get as far as it should proves nothing: the stage stays, and the picture offers to run it again.
    """
    attempt = found(lesson)
    run = get_runs().get(run_id) if run_id else None
    if attempt is None or attempt.stage != "run" or run is None:
        return
    # The record is over before the processes are gone, and the picture tells of the end as soon as it sees it.
    end = end_of(run.run_dir) or run.unwritten_end
    if end is None or not (end["outcome"] in ("finished", "out_of_memory") or end.get("expected")):
        return
    judged = move(lesson, store().see_verdict)
    if judged is not None and not view_of(lesson, judged).may_try_again:
        move(lesson, lambda attempt: store().explain(attempt, lesson))


def outcome(run: Run) -> str | None:
    """How the run ended; None while it goes on. The record says so a moment before the processes are gone."""
    if run.over:
        return run.state
    end = end_of(run.run_dir)
    return str(end["outcome"]) if end else None


def try_again(lesson: Lesson) -> None:
    """A second try, for less."""
    move(lesson, lambda attempt: store().try_again(attempt, lesson))


def show_answer(lesson: Lesson) -> None:
    """The escape, at any stage."""
    move(lesson, lambda attempt: store().show_answer(attempt, lesson, learner=learner()))


def stop(lesson: Lesson, run_id: str) -> None:
    """This visitor no longer wants the run; it ends with the last one who does."""
    attempt = found(lesson)
    if attempt is not None and attempt.stored:
        get_runs().stop(run_id, attempt.token)


def watch_recording(lesson: Lesson, cause_id: str, run_id: str) -> None:
    """Instead of waiting in line: the newest good equal run, labelled as a recording. Whoever waited leaves the line."""
    attempt, recording = found(lesson), get_runs().get(run_id)
    cause = lesson.cause(cause_id)
    if attempt is None or not attempt.stored or recording is None or not _shows(lesson, recording, cause_id):
        return
    st.session_state["recording"] = run_id
    waiting = attempt.runs.get(cause_id) or st.query_params.get(RUN)
    if waiting:
        stop(lesson, waiting)
    if cause is not None:
        move(lesson, lambda attempt: store().record_run(attempt.token, lesson, cause_id, run_id))
    if attempt.stage == "explained":
        show_run(cause_id, run_id)


def _shows(lesson: Lesson, run: Run, cause_id: str) -> bool:
    """Whether a run belongs to this cause, or to the healthy script."""
    cause = lesson.cause(cause_id)
    shown = cause_of(lesson, run.config, preferred=None if cause is None else cause_id)
    if cause is None:
        return shown is None and run.config.scenario == lesson.config_of(lesson.fix).scenario
    return shown == cause_id


def show_run(cause_id: str, run_id: str | None) -> None:
    """Put a cause and a run of it on the stage, and into the URL. The healthy script is no cause: its run alone names it."""
    st.session_state[FIX] = cause_id == FIX
    for name, value in ((CAUSE, None if cause_id == FIX else cause_id), (RUN, run_id)):
        if value is None:
            st.query_params.pop(name, None)
        else:
            st.query_params[name] = value


def choose_cause(key: str) -> None:
    """The cause selector: show that cause's own run, if it has one."""
    show_run(st.session_state[key], None)
