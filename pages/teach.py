"""For instructors: classes for whoever has the key, and what the course covers for everybody.

Owns the order of the page. A class is driven from its console; its parts stand in `pages.teach_class` and its neighbours.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons.classroom import UnknownClassError, get_classroom
from lessons.store import StoreError
from pages.notices import said
from pages.teach_below import below
from pages.teach_class import class_list, one_class
from pages.teach_new import CLASS, new_class
from pages.teach_sign_in import instructor, sign_in, sign_out

INTRO = (
    "<h1>For instructors</h1>"
    '<div class="pg-prose"><p>The room reads a symptom and votes on its phones. Neighbours talk, the room votes again and predicts the '
    "picture of the cause it believes in; then you run that cause on every screen, and the picture decides. Only then the key.</p>"
    "<p>People join by a code, without an account. You drive it with one key, from a console that nobody else sees. If a run cannot "
    "start, its recording is on screen within two seconds, labelled. <b>docs/teach-a-class.md</b> goes from nothing to a class.</p></div>"
)


def page() -> None:
    """Sign in; or the classes; or one class."""
    with st.container(key="teach"):
        sentence = said()
        if sentence:
            st.html(f'<p class="pg-said" role="alert">{escape(sentence)}</p>')
        if instructor() is None:
            st.html(INTRO)
            sign_in()
            below()
            return
        try:
            _classes()
        except StoreError as fault:
            st.error(f"{fault} Please reload in a moment.")


def _classes() -> None:
    classes = get_classroom().classes()
    code = str(st.query_params.get(CLASS, ""))
    if code:
        try:
            state = get_classroom().state(code)
        except UnknownClassError:
            st.html(f'<p class="pg-link-fault">There is no class {escape(code[:20])} any more.</p>')
        else:
            one_class(state, classes)
            return
    with st.container(key="teach-top", horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.html("<h1>Your classes</h1>", width="content")
        sign_out()
    class_list(classes)
    new_class()
    below()


page()
