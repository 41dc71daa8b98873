"""The first page: what this is, and where to begin."""

from __future__ import annotations

import streamlit as st

from lessons import load_lessons

lesson = load_lessons().lessons[0]

with st.container(key="home"):
    st.title("Why does a job on eight GPUs run no faster than on one?")
    st.markdown(
        "Read what someone saw on a node, lock in the cause you believe in, predict what its run will draw, then **run it**: "
        "a real PyTorch DDP job with eight ranks, drawn per GPU while it trains. The picture gives the verdict."
    )
    with st.container(key="home-first", border=True):
        st.markdown(f"**{lesson.title}**")
        st.caption(f"Lesson 1 of {len(load_lessons().lessons)} · {lesson.topic} · {lesson.minutes} min")
        if st.button("Start the lesson", type="primary", key="start"):
            st.switch_page("lesson.py")
    st.caption("No GPU is needed. The training code runs for real; times, memory and power are modelled. Nothing to sign up for.")
