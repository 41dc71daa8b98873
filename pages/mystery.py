"""A mystery run: an unlabelled live run; name its cause and the figure that told you, then see what it was.

Owns the order of the page. Sees a `MysteryView` only, which holds nothing of the answer before it is given. The lanes are as neutral as
the view: no accent, no opening metric of the experiment's own.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons.learners import DeadToken
from lessons.mystery import MysteryView
from lessons.store import StoreError
from pages.components.focus import focus
from pages.components.lanes import lanes
from pages.mystery_ask import ask
from pages.mystery_moves import act, begin, shown
from pages.mystery_tell import tell
from pages.notices import said


def page() -> None:
    """One mystery run, or the offer of one."""
    try:
        view = shown()
    except (StoreError, DeadToken) as fault:
        st.error(f"{fault} Please reload in a moment.")
        st.stop()
    stage = "offer" if view is None else view.stage
    with st.container(key="lesson"):
        st.html(f'<span class="pg-at" data-stage="{stage}"></span>')
        with st.container(key="ask"):
            _head(view)
        with st.container(key="stage"):
            st.html('<h2 class="pg-over">The run without a label</h2>')
            lanes(key="lanes", run_id=view.run_id if view else None, odd_rank=None, metric="busy", on_action=act)
        with st.container(key="tell"):
            sentence = said()
            if sentence:
                st.html(f'<p class="pg-said" role="alert">{escape(sentence)}</p>')
            if view is None:
                _offer()
            elif view.stage == "open":
                ask(view)
            else:
                tell(view)
    focus(f"at-{stage}", f"{view.token if view else ''}-{stage}")


def _head(view: MysteryView | None) -> None:
    place = "A review, in disguise" if view is not None and view.review else "Practice"
    st.html(f'<p class="pg-meta">{place} · {view.minutes if view else 2} min</p><h1 id="at-open">What is wrong with this run?</h1>')


def _offer() -> None:
    st.html(
        '<div class="pg-prose" id="at-offer"><p>Somebody started a job and did not say what is in it. You see what you would see on the '
        "node: eight lanes, memory, power, a step in slow motion. Name the cause, and the figure that told you.</p>"
        "<p>It may also be that nothing is wrong. Every run is new: GPU, model and batch change each time.</p></div>"
    )
    st.button("Start a mystery run", type="primary", key="begin", on_click=begin)


page()
