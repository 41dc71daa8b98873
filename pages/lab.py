"""The lab: every knob of a run, the run itself, and what can be learned from it. The order of everything; the parts draw it.

Owns the page's frame. What the URL says is `lab_link`'s.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from pages.components.focus import focus
from pages.lab_knobs import knobs
from pages.lab_stage import stage
from pages.lab_state import focus_target, link, run_shown
from pages.lab_views import views

at = link()
run = run_shown(at)
if at.faults:
    text = "; ".join(escape(str(fault)) for fault in at.faults[:3])
    st.html(f'<p class="pg-link-fault" role="status">A part of this link was left out: {text}</p>')
with st.container(key="lab"):
    with st.container(key="lab-left"):
        st.html(
            '<h1 id="at-lab">The lab</h1><p class="pg-note">Turn any knob, then run it on up to eight GPUs.</p>'
        )
        knobs(at, run)
    with st.container(key="lab-stage"):
        stage(at, run)
focus(*focus_target(), scroll=focus_target()[0] == "at-sweep")
with st.container(key="lab-below"):
    views(at, run)
