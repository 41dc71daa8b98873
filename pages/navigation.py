"""The script that Streamlit runs first: the pages and what every page shows.

Owns the frame around pages. Must not hold what only one page shows.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent
LOGO = HERE / "logo.svg"

page = st.navigation(
    [
        st.Page("home.py", title="Start", default=True),
        st.Page("lesson.py", title="Lesson", url_path="lesson"),
        st.Page("lab.py", title="Lab", url_path="lab"),
        st.Page("how.py", title="How these GPUs work", url_path="how"),
        st.Page("machine.py", title="Machine", url_path="machine"),
    ],
    position="top",
)
st.set_page_config(page_title=f"{page.title} - Shardlab", layout="wide", initial_sidebar_state="collapsed")
st.logo(LOGO, size="medium")
st.html(
    '<p class="pg-badge" title="The training code runs for real; times, memory and power are modelled.">Simulated timing, real DDP</p>'
)
page.run()
