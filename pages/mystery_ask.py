"""What a mystery run asks: the cause, the figure that told it, and how sure one is.

Owns the form. Must not know the answer.
"""

from __future__ import annotations

import streamlit as st

from lessons.mystery import MysteryView
from pages.components.marks import CERTAINTY, WHY, stakes_line
from pages.mystery_moves import answer, give_up


def ask(view: MysteryView) -> None:
    """The form; nothing is sent before its button is pressed."""
    names = {candidate.id: candidate.name for candidate in view.candidates}
    with st.form(f"mystery-{view.token}", border=False, enter_to_submit=False):
        st.radio("What is its cause?", list(names), index=None, key=f"cause-{view.token}", format_func=names.__getitem__)
        st.selectbox(
            "Which figure told you?", list(view.figures), index=None, key=f"figure-{view.token}", format_func=view.figures.__getitem__,
            placeholder="Choose the one you went by",
        )
        st.segmented_control("How sure are you?", list(CERTAINTY), format_func=CERTAINTY.__getitem__, key=f"sure-{view.token}", help=WHY)
        st.html(f'<p class="pg-note">{stakes_line(view.stakes, try_no=1)}</p>')
        with st.container(key="lock", horizontal=True, vertical_alignment="center"):
            st.form_submit_button("Name the cause", type="primary", key="name-it", on_click=answer)
    with st.container(key="after-form"):
        st.button("Tell me instead", type="tertiary", key="give-up", on_click=give_up)
