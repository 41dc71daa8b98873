"""My progress: what is mastered, what is taken for what, and everything that is kept, to take along or to delete.

Owns the page. Names of causes are shown only where the learner has seen a verdict on them; `lessons.progress` sees to that.
"""

from __future__ import annotations

import json
from html import escape
from urllib.parse import urlsplit

import streamlit as st

from lessons import load_lessons
from lessons.learning import get_learning
from lessons.mastery import CauseMastery, Confusion
from lessons.progress import Progress
from lessons.store import StoreError
from pages.components.marks import marks_line
from pages.learner import learner
from pages.learner_progress import due_line, progress
from pages.notices import said, say
from scenarios.config import RunConfig
from scenarios.runs import QueueFull, Run, get_runs


def page() -> None:
    """Mastery, confusions, then what is kept."""
    try:
        mine = progress(load_lessons())
    except StoreError as fault:
        st.error(f"{fault} Please reload in a moment.")
        st.stop()
    with st.container(key="progress"):
        st.html('<h1>My progress</h1>')
        sentence = said()
        if sentence:
            st.html(f'<p class="pg-said" role="alert">{escape(sentence)}</p>')
        if not mine.known:
            st.html(
                '<p class="pg-prose">Nothing is kept yet. With your first answer this page fills: which causes you can name, which you '
                "mix up, and what comes back when.</p>"
            )
            st.page_link("course.py", label="To the course")
            return
        _mastery(mine)
        _confusions(mine.confusions)
        _kept()


def _mastery(mine: Progress) -> None:
    mastered = sum(each.level == "mastered" for each in mine.mastery)
    st.html(
        f'<p class="pg-note">{mastered} of {mine.causes} causes mastered · {marks_line(mine.marks, mine.answers)} · '
        f"{escape(due_line(mine.due))}</p>"
        '<h2 class="pg-h">Causes you have met</h2>'
        '<p class="pg-note">Mastered: named right on three occasions in a row, on different days. A miss begins anew.</p>'
    )
    rows = "".join(_mastery_row(each) for each in mine.mastery)
    none = '<p class="pg-prose">None yet: a cause stands here once you have seen the verdict on it.</p>'
    st.html(f'<ul class="pg-mastery">{rows}</ul>' if rows else none)


def _mastery_row(each: CauseMastery) -> str:
    width = round(100 * each.share)
    return (
        f"<li><span>{escape(each.name)}</span>"
        f'<span class="pg-level" aria-hidden="true"><span style="width:{width}%"></span></span>'
        f"<span>{escape(each.level)}</span><span>{each.right} of {each.answered} right</span></li>"
    )


def _confusions(found: tuple[Confusion, ...]) -> None:
    if not found:
        return
    st.html('<h2 class="pg-h">What you take for what</h2>')
    for number, each in enumerate(found[:5]):
        with st.container(key=f"confusion-{number}", horizontal=True, vertical_alignment="center", gap="small"):
            times = "once" if each.times == 1 else f"{each.times} times"
            st.html(
                f'<p class="pg-prose">You took <b>{escape(each.name)}</b> for <b>{escape(each.taken_for_name)}</b>, {times}.</p>',
                width="content",
            )
            if each.config is not None and each.taken_for_config is not None:
                pressed = st.button("Compare the two runs", key=f"compare-{number}")
                if pressed:
                    _compare(each.config, each.taken_for_config)


def _compare(*configs: RunConfig) -> None:
    """Both runs side by side in the lab: recordings where there are some, else fresh ones at full speed."""
    try:
        runs = [_run_of(config) for config in configs]
    except QueueFull as full:
        say(str(full))
        st.rerun()
    st.switch_page("lab.py", query_params={"view": "compare", "pin": ".".join(run.run_id for run in runs)})


def _run_of(config: RunConfig) -> Run:
    return get_runs().recording(config) or get_runs().start(config, viewer=learner(), pace="fast")


def _kept() -> None:
    st.html(
        '<h2 class="pg-h">Continue elsewhere</h2>'
        '<p class="pg-note">Open this link in another browser and go on there. Whoever has it is you: do not pass it on.</p>'
    )
    st.code(f"{_base()}/continue/{learner()}", language=None, wrap_lines=True)  # a phone would have to scroll, which no key does
    st.html(
        '<h2 class="pg-h">What is kept about you</h2>'
        '<p class="pg-note">Your answers, predictions and marks, under a random token. No name, no address, nothing else.</p>'
    )
    with st.container(key="kept", horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Take it along (JSON)", lambda: json.dumps(get_learning().learners.export(learner()), indent=1), key="export",
            file_name="shardlab-progress.json", mime="application/json", on_click="ignore",
        )
        with st.popover("Delete it all", key="delete"):
            st.markdown("Everything kept under your token is deleted at once, and cannot be brought back.")
            st.button("Yes, delete everything", type="primary", key="delete-yes", on_click=_delete)


def _delete() -> None:
    try:
        get_learning().learners.delete(learner())
    except StoreError as fault:
        say(str(fault))
        return
    say("Everything was deleted. Reload the page to begin afresh.")


def _base() -> str:
    """Where this app is served, as the browser sees it."""
    url = urlsplit(str(st.context.url or ""))
    path = url.path.rstrip("/").removesuffix("/progress")
    return f"{url.scheme}://{url.netloc}{path}"


page()
