"""The script that Streamlit runs first: the pages and what every page shows.

Owns the frame around pages. Must not hold what only one page shows.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import streamlit as st

from pages.components.source_words import machine_badge
from scenarios.settings import load_settings

HERE = Path(__file__).parent
LOGO = HERE / "logo.svg"

page = st.navigation(
    [
        st.Page("home.py", title="Start", default=True),
        st.Page("course.py", title="Course", url_path="course"),
        st.Page("lesson.py", title="Lesson", url_path="lesson", visibility="hidden"),
        st.Page("mystery.py", title="Mystery runs", url_path="mystery"),
        st.Page("finder.py", title="Find the cause", url_path="finder"),
        st.Page("lab.py", title="Lab", url_path="lab"),
        st.Page("how.py", title="How these GPUs work", url_path="how"),
        st.Page("machine.py", title="Machine", url_path="machine"),
        st.Page("progress.py", title="My progress", url_path="progress"),
        st.Page("teach.py", title="For instructors", url_path="teach", visibility="hidden"),
        st.Page("symptoms.py", title="Symptoms", url_path="symptoms", visibility="hidden"),
    ],
    position="top",
)
st.set_page_config(page_title=f"{page.title} - Shardlab", layout="wide", initial_sidebar_state="collapsed")
st.logo(LOGO, size="medium")
badge = machine_badge()
st.html(f'<p class="pg-badge pg-is-{badge.source}" title="{escape(badge.title)}">{badge.words}</p>')
if load_settings().preview:
    from pages.preview_bar import preview_bar

    preview_bar(page.url_path)
page.run()
