"""The rehearsal on the page: a class of its own with the same lessons, thirty simulated participants in it, and how they fare.

A copy, so that the real class stays in its lobby and nothing of a rehearsal can count in it; at the end the copy is deleted with everything
in it. Owns that copy. What the participants do is for `pages.classroom.rehearsal`.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons import load_lessons
from lessons.classroom import ClassState, get_classroom
from lessons.model import Lesson
from lessons.store import StoreError
from pages.classroom import rehearsal
from pages.classroom.habits import Lean
from pages.classroom.rehearsal import PARTICIPANTS, Rehearsal, Tally
from pages.notices import say

TITLE = "Rehearsal of "
SLOW_MS = 1_000.0
STREAM_GRACE = 0.9
"""Participants who follow, of those who joined, below which something is wrong."""


def copy_title(code: str) -> str:
    """By which a copy is known, also after a restart and on another replica."""
    return f"{TITLE}{code}"


def is_copy(state: ClassState) -> bool:
    """Whether it is the rehearsal of another class."""
    return state.title.startswith(TITLE) and len(state.title) == len(TITLE) + 6


def rehearse(state: ClassState, classes: list[ClassState], base: str) -> None:
    """The section. `base`: where the simulated participants come in."""
    copy = next((each for each in classes if each.title == copy_title(state.code)), None)
    with st.container(key="teach-rehearse"):
        st.html(
            '<h2 class="pg-h">Rehearsal</h2>'
            f'<p class="pg-note">{PARTICIPANTS} simulated participants join a copy of this class at {escape(base)}, vote, change their '
            "minds after talking, predict and watch. Drive it with its own projector and console. Nothing of it counts: the copy is "
            "deleted at the end.</p>"
        )
        if copy is None:
            st.button("Begin the rehearsal", key="rehearse", on_click=_begin, args=(state, base))
            return
        st.html(stage_links(copy.code))
        if rehearsal.rehearsal_of(copy.code) is None:
            st.html('<p class="pg-note">Its participants have left: the server was restarted.</p>')
            st.button("Send them in again", key="rehearse-again", on_click=_send, args=(copy, base))
        else:
            _tally(copy.code)
        st.button("End the rehearsal and delete it", key="rehearse-end", on_click=end_copy, args=(copy.code,))


def stage_links(code: str) -> str:
    """The two pages by which a class is shown and driven, in tabs of their own."""
    return (
        f'<p class="pg-links"><a href="class/{code}/projector" target="_blank" rel="noopener">Projector</a> '
        f'<a href="class/{code}/console" target="_blank" rel="noopener">Console</a></p>'
    )


def lean_of(lessons: list[Lesson | None]) -> Lean:
    """What a room tends to in these items: the right option, and the picture that its cause draws."""
    right, draws = {}, {}
    for number, lesson in enumerate(lessons, 1):
        option = None if lesson is None else next((each for each in lesson.options if each.right), None)
        cause = None if lesson is None or option is None else lesson.cause(option.causes[0])
        if option is not None and cause is not None:
            right[number], draws[number] = option.id, str(cause.draws)
    return Lean(right=right, draws=draws)


def end_copy(code: str) -> None:
    """They leave, and everything they did goes with the copy."""
    rehearsal.end(code)
    try:
        get_classroom().delete(code)
    except StoreError as fault:
        say(f"The rehearsal could not be deleted. {fault}")


def _begin(state: ClassState, base: str) -> None:
    try:
        copy = get_classroom().create(list(state.lesson_ids), title=copy_title(state.code), plan=list(state.plan))
    except (StoreError, ValueError) as fault:
        say(f"The rehearsal could not be made. {fault}")
        return
    _send(copy, base)


def _send(copy: ClassState, base: str) -> None:
    lessons = load_lessons()
    rehearsal.begin(base, copy.code, lean=lean_of([lessons.get(lesson_id) for lesson_id in copy.lesson_ids]))


@st.fragment(run_every=1.0)
def _tally(code: str) -> None:
    running: Rehearsal | None = rehearsal.rehearsal_of(code)
    if running is not None:
        st.html(f'<div role="status">{tally_html(running.tally)}</div>')


def tally_html(tally: Tally) -> str:
    """How they fare, with what to do where something is not in order."""
    slowest = "" if tally.slowest_ms is None else f", the slowest acknowledged after {tally.slowest_ms:.0f} ms"
    rows = [
        f"{tally.joined} of {tally.wanted} joined, {tally.following} follow",
        f"{tally.votes} votes sent{slowest}" + (f"; {tally.refused} came too late" if tally.refused else ""),
        f"{tally.pictures} samples of runs arrived",
    ]
    said = "".join(f"<li>{escape(row)}</li>" for row in rows)
    advice = tally_advice(tally)
    return f'<ul class="pg-prose">{said}</ul>' + (f'<p class="pg-said">{escape(advice)}</p>' if advice else "")


def tally_advice(tally: Tally) -> str:
    """What is wrong and what to do; empty where all is well."""
    if tally.fault and tally.joined < tally.wanted:
        return f"Not everybody gets in: {tally.fault}. See the lines of the pre-flight on address and places."
    if tally.joined and tally.following < STREAM_GRACE * tally.joined and tally.faults:
        return f"Not everybody can follow: {tally.fault}. A proxy may cut or hold back event streams; see docs/teach-a-class.md."
    if tally.slowest_ms is not None and tally.slowest_ms > SLOW_MS:
        return "Votes take long to be acknowledged. See what else this machine does, and whether the phones' way leads through a VPN."
    return ""
