"""The first page: what this is, and where to begin or go on, find help at work, practise, or teach.

Owns the entrance. What comes next for a learner is decided by `lessons.progress`.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons import load_lessons
from lessons.progress import NextStep
from lessons.reviews import Due
from lessons.store import StoreError
from pages.learner_progress import due_line, progress
from pages.next_step import next_step


def page() -> None:
    """Intro, then one card for each kind of visitor."""
    with st.container(key="home"):
        st.html(
            "<h1>Eight GPUs, and hardly faster than one. Why?</h1>"
            '<p class="pg-prose">Read what someone saw on a node, lock in the cause you believe in, predict what its run will draw, then '
            "<b>run it</b>: a real PyTorch DDP job with eight ranks, drawn per GPU while it trains. The picture gives the verdict.</p>"
        )
        with st.container(key="home-cards"):
            with st.container(key="home-first", border=True):
                _first()
            with st.container(key="home-work", border=True):
                _card(
                    "At work", "I have a problem at work",
                    "Say what you see on your own node. You get the likely causes, and the command that confirms each.",
                )
                st.page_link("finder.py", label="Find the cause")
                st.page_link("symptoms.py", label="All symptoms on one page, to print")
            with st.container(key="home-practice", border=True):
                _card("Practice", "A run without a label", "Watch an unlabelled job, name its cause, and say which figure told you.")
                st.page_link("mystery.py", label="Name the cause of a mystery run")
                st.page_link("lab.py", label="Or turn every knob yourself, in the lab")
            with st.container(key="home-teach", border=True):
                _card(
                    "For instructors", "Show it to a class",
                    "The room votes on its phones, talks, votes again, and a live run decides. Take questions along, or write your own.",
                )
                st.page_link("teach.py", label="For instructors")
        st.html(
            '<p class="pg-note">No GPU is needed, and nothing to sign up for. The training code runs for real; times, memory and power '
            "are modelled.</p>"
        )


def _first() -> None:
    """The way into the course, or on with it."""
    lessons = load_lessons()
    try:
        mine = progress(lessons)
        step, due = mine.next, mine.due
    except StoreError as fault:  # the course can be read all the same
        st.html(f'<p class="pg-said" role="alert">Your progress cannot be reached just now. {escape(str(fault))}</p>')
        step, due = NextStep(kind="start", lesson_id=lessons.lessons[0].id), Due(count=0, minutes=0, next_due_s=None)
    next_step(step, due, lessons)
    if due.count and step.kind != "review":
        st.html(f'<p class="pg-note">And {escape(due_line(due))}.</p>')
    st.page_link("course.py", label=f"The whole course, {len(lessons.lessons)} lessons")


def _card(over: str, title: str, text: str) -> None:
    st.html(f'<p class="pg-meta">{over}</p><h2>{title}</h2><p class="pg-prose">{text}</p>')


page()
