"""One class before, during and after: how phones get in, its pages, pre-flight, rehearsal, results.

Owns the order of these. A class is driven from its console, not from here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape

import streamlit as st

from lessons import load_lessons
from lessons.classroom import ClassState, get_classroom
from lessons.classroom.model import STATE_WORDS
from lessons.store import StoreError
from pages.classroom import rehearsal
from pages.classroom.address import Address, Surroundings, objections
from pages.classroom.qr import qr_data_url
from pages.notices import say
from pages.teach_look import phones, pre_flight, surroundings
from pages.teach_new import CLASS, plan_line
from pages.teach_rehearse import copy_title, end_copy, is_copy, rehearse, stage_links


def class_list(classes: Sequence[ClassState]) -> None:
    """Every class of this server, latest first; copies for a rehearsal stand with their class."""
    codes = {each.code for each in classes}
    own = [each for each in classes if not is_copy(each)]
    if not own:
        st.html('<p class="pg-note">No class yet. Make one below; it waits in its lobby until you begin.</p>')
    for state in own:
        with st.container(key=f"class-row-{state.code}", horizontal=True, vertical_alignment="center", gap="small"):
            st.button(state.title, key=f"open-{state.code}", type="tertiary", on_click=_open, args=(state.code,))
            st.html(f'<p class="pg-note">{escape(state_line(state))}{_ways(state)}</p>', width="content")
    for state in classes:
        if is_copy(state) and state.title.removeprefix(copy_title("")) not in codes:
            with st.container(key=f"class-row-{state.code}", horizontal=True, vertical_alignment="center", gap="small"):
                st.html('<p class="pg-note">A rehearsal whose class was deleted</p>', width="content")
                st.button("Delete it", key=f"end-{state.code}", on_click=end_copy, args=(state.code,))


def _ways(state: ClassState) -> str:
    """Straight to the pages of a class that is not over."""
    if state.state == "ended":
        return ""
    return "".join(
        f' · <a href="class/{state.code}/{page}" target="_blank" rel="noopener" aria-label="{words} of {escape(state.title)}">{words}</a>'
        for page, words in (("projector", "Projector"), ("console", "Console"))
    )


def state_line(state: ClassState, now_s: float | None = None) -> str:
    """Code, state, and when it was made."""
    now_s = time.time() if now_s is None else now_s
    item = f", item {state.item_no} of {len(state.lesson_ids)}" if state.item_no and state.state != "ended" else ""
    return f"{state.code} · {STATE_WORDS[state.state]}{item} · made {_ago(now_s - state.created_s)}"


def one_class(state: ClassState, classes: list[ClassState]) -> None:
    """Everything about it."""
    known = load_lessons()
    lessons = [known.get(lesson_id) for lesson_id in state.lesson_ids]
    there = [lesson for lesson in lessons if lesson is not None]
    around = surroundings()
    address = phones(around)
    st.button("All classes", key="all-classes", type="tertiary", icon=":material/arrow_back:", on_click=_close)
    titles = [lesson.title if lesson else "A lesson that is no longer there" for lesson in lessons]
    st.html(
        f'<h1>{escape(state.title)}</h1><p class="pg-note">{escape(state_line(state))}</p>'
        f'<p class="pg-note">{plan_line(titles, list(state.plan))}</p>'
    )
    with st.container(key="teach-class"):
        with st.container(key="teach-door"):
            st.html(door_html(state.code, address, around))
        with st.container(key="teach-side"):
            st.html(
                '<h2 class="pg-h">The class</h2>'
                '<p class="pg-note">The projector goes on the big screen: nothing secret is in it, and no controls. The console stays with '
                "you; it fits a phone. Space or PageDown goes on.</p>" + stage_links(state.code)
            )
            found = pre_flight(state.code, there, address, around)
            base = address.url if found.reachable else f"http://127.0.0.1:{st.get_option('server.port')}{_base_path()}"
            rehearse(state, classes, base)
            _after(state)


def door_html(code: str, address: Address, around: Surroundings) -> str:
    """How phones get in: code, address, letters. Never without a warning where phones may not get there."""
    against = objections(address, around)
    said = f'<p class="pg-said" role="alert">{escape(against[0].words)} The pre-flight says what to do.</p>' if against else ""
    way = address.joining(code)
    return (
        f'{said}<img class="pg-qr" src="{qr_data_url(way)}" alt="QR code of {escape(way)}">'
        f'<p class="pg-join">{escape(address.short)}/c</p><p class="pg-code" aria-label="Code {escape(" ".join(code))}">{escape(code)}</p>'
        f'<p class="pg-note">The code leads to <a href="c/{escape(code)}" target="_blank" rel="noopener">'
        f"{escape(way)}</a>.</p>"
    )


def _after(state: ClassState) -> None:
    with st.container(key="teach-after"):
        st.html('<h2 class="pg-h">Results</h2>')
        if state.item_no == 0:
            st.html('<p class="pg-note">Once the first vote is open, the table of answers and the report stand here.</p>')
        else:
            st.html(
                f'<p class="pg-links"><a href="class/{state.code}/report" target="_blank" rel="noopener">Report, to print</a> '
                f'<a href="class/{state.code}/results.csv" download>Answers as CSV</a></p>'
                '<p class="pg-note">One row per participant; nicknames where people gave one. Statistics of an item need five votes.</p>'
            )
        with st.popover("Delete this class", key="delete-class"):
            st.markdown("The class is deleted at once, with every vote in it, and cannot be brought back.")
            st.button("Yes, delete it", type="primary", key="delete-class-yes", on_click=_delete, args=(state.code,))


def _open(code: str) -> None:
    st.query_params[CLASS] = code


def _close() -> None:
    st.query_params.pop(CLASS, None)


def _delete(code: str) -> None:
    try:
        for state in get_classroom().classes():
            if state.title == copy_title(code):
                end_copy(state.code)
        rehearsal.end(code)
        get_classroom().delete(code)
    except StoreError as fault:
        say(f"The class could not be deleted. {fault}")
        return
    _close()
    say("The class was deleted.")


def _base_path() -> str:
    path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


def _ago(seconds: float) -> str:
    if seconds < 90:
        return "just now"
    for size, noun in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {noun}{'' if count == 1 else 's'} ago"
    return "just now"
