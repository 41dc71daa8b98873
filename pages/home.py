"""The first page: what this is, and where to begin."""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons import load_lessons

lessons = load_lessons().lessons
lesson = lessons[0]

with st.container(key="home"):
    st.html(
        "<h1>Eight GPUs, and hardly faster than one. Why?</h1>"
        '<p class="pg-prose">Read what someone saw on a node, lock in the cause you believe in, predict what its run will draw, then '
        "<b>run it</b>: a real PyTorch DDP job with eight ranks, drawn per GPU while it trains. The picture gives the verdict.</p>"
    )
    with st.container(key="home-first", border=True):
        st.html(
            f'<p class="pg-meta">Lesson 1 of {len(lessons)} · {escape(lesson.topic)} · {lesson.minutes} min</p>'
            f"<h2>{escape(lesson.title)}</h2>"
        )
        if st.button("Start the lesson", type="primary", key="start"):
            st.switch_page("lesson.py")
    st.page_link("lab.py", label="Or turn every knob yourself, in the lab")
    st.html(
        '<p class="pg-note">No GPU is needed, and nothing to sign up for. The training code runs for real; times, memory and power are '
        "modelled.</p>"
    )
