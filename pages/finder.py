"""The symptom finder: for somebody with a problem at work. What do you see? At the left the questions, beside them the ranked causes.

Owns the page's frame and its states. What is answered is in the URL; the ranking is `lessons.symptoms`, one cause is `finder_cause`.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import streamlit as st

from lessons.loader import CONTENT
from lessons.symptoms import Ranked, Symptoms, conflict, rank, tells_most
from lessons.symptoms.content import symptoms_at
from pages.finder_cause import cause_inside
from pages.finder_link import FinderLink, parse_finder_link

FIRST_LOOK = "nvidia-smi --query-gpu=index,utilization.gpu,power.draw,power.limit,memory.used --format=csv -l 1"
SHOWN = (3, 6)
"""At least and at most so many causes are listed at once."""
FROM_SHARE = 0.03
ALL = "finder-all"


def answer(question_ids: Sequence[str]) -> None:
    """A chip was pressed: what the chips say goes into the address.

    All of them are read: whoever presses two in quick succession is ahead of the address, which comes back without the first.
    """
    given = {name: value for name in question_ids if (value := st.session_state.get(f"finder-{name}")) is not None}
    st.query_params.from_dict(given)


def clear() -> None:
    """Nothing is known any more."""
    st.query_params.clear()
    st.session_state[ALL] = False


def questions(symptoms: Symptoms, at: FinderLink) -> None:
    """One row of chips per question. None is a good answer: it says that this is not known."""
    ids = [question.id for question in symptoms.questions]
    for question in symptoms.questions:
        st.session_state[f"finder-{question.id}"] = at.answers.get(question.id)
        st.pills(
            question.ask, list(question.answers), format_func=question.answers.__getitem__, key=f"finder-{question.id}",
            help=f"Where to look: {question.look}", on_change=answer, args=(ids,),
        )


def ranking(symptoms: Symptoms, at: FinderLink) -> None:
    """What is likely, and why."""
    ranked = rank(symptoms, at.answers)
    told = tells_most(symptoms, at.answers)
    if not at.answers:
        st.html(
            '<h2 class="pg-h" id="at-causes">Nothing chosen yet</h2>'
            '<p class="pg-prose">Choose what you see at the left; leave out what you do not know. Two or three answers are often enough. '
            "This command on the node shows three of them:</p>"
        )
        st.code(FIRST_LOOK, language=None, wrap_lines=True)
        if told is not None:
            st.html(f'<p class="pg-note">Most is told by: <b>{escape(told.ask)}</b></p>')
        st.page_link("symptoms.py", label="All symptoms on one page, to print")
        return
    best = ranked[0]
    st.html(f'<div role="status"><h2 class="pg-h" id="at-causes">{verdict_html(best)}</h2></div>')
    found = conflict(symptoms, at.answers)
    if found is not None:
        given = found.question.answers[at.answers[found.question.id]]
        st.html(
            '<p class="pg-link-fault">No single cause shows all of this. Look again at '
            f"<b>{escape(found.question.ask)}</b> ({escape(given)}): without it, most points to <b>{escape(found.without.title)}</b>. "
            "Or two things are wrong at once.</p>"
        )
    shown = listed(ranked, everything=bool(st.session_state.get(ALL)))
    for number, one in enumerate(shown, start=1):
        with st.container(key=f"finder-cause-{one.cause.id}"):
            st.html(bar_html(one, best.share, first=number == 1))
            with st.expander(f"{number}. {one.cause.title}"):
                cause_inside(one)
    if told is not None:
        st.html(f'<p class="pg-note pg-next">What would narrow it most: <b>{escape(told.ask)}</b></p>')
    with st.container(key="finder-after", horizontal=True, vertical_alignment="center", gap="medium"):
        rest = len(ranked) - len(shown)
        if rest:
            st.button(f"Show the other {rest} causes", type="tertiary", key="finder-more", on_click=show_all)
        st.button("Clear all", type="tertiary", key="finder-clear", on_click=clear)
        st.page_link("symptoms.py", label="All symptoms on one page")
    st.html('<p class="pg-note">The address of this page holds your answers: send it to whoever should see the same.</p>')


def show_all() -> None:
    st.session_state[ALL] = True


def listed(ranked: tuple[Ranked, ...], *, everything: bool) -> tuple[Ranked, ...]:
    """The causes that are worth a look."""
    if everything:
        return ranked
    worth = sum(one.share >= FROM_SHARE for one in ranked)
    return ranked[: max(SHOWN[0], min(SHOWN[1], worth))]


def verdict_html(best: Ranked) -> str:
    """The first cause in words."""
    first = "First to check"
    how = {"most likely": "Most likely", "possible": f"Many causes fit. {first}"}.get(best.likely, first)
    return f"<span>{how}:</span> {escape(best.cause.title)}"


def bar_html(one: Ranked, best: float, *, first: bool) -> str:
    """How a cause compares with the first, as a bar and in words."""
    counts = [f"{one.fits} fit" + ("s" if one.fits == 1 else "")] if one.fits else []
    counts += [f"{one.against} against"] if one.against else []
    width = max(2, round(100 * one.share / best))
    return (
        f'<p class="pg-likely{" pg-first" if first else ""}"><span class="pg-bar" aria-hidden="true"><i style="width:{width}%"></i></span>'
        f'<span>{escape(one.likely)}</span><span class="pg-counts">{escape(", ".join(counts) or "no evidence")}</span></p>'
    )


def page() -> None:
    """Everything."""
    st.html(Path(__file__).with_name("finder.css"))
    symptoms = symptoms_at(CONTENT)
    if symptoms is None:
        st.error("The finder has nothing to go by. Whoever runs this server finds the reason with `python -m lessons check`.")
        return
    at = parse_finder_link(st.query_params.to_dict(), symptoms)
    if at.faults:
        text = "; ".join(escape(str(fault)) for fault in at.faults[:3])
        st.html(f'<p class="pg-link-fault" role="status">A part of this link was left out: {text}</p>')
    with st.container(key="finder"):
        with st.container(key="finder-left"):
            st.html(
                '<h1 id="at-finder">I have a problem at work</h1>'
                '<p class="pg-note">What do you see on the node? Press what fits, once more to take it back.</p>'
            )
            with st.container(key="finder-ask"):
                questions(symptoms, at)
        with st.container(key="finder-causes"):
            ranking(symptoms, at)
    if at.answers:
        best = rank(symptoms, at.answers)[0]
        st.html(f'<p class="pg-jump"><a href="#at-causes">{verdict_html(best)}</a></p>')


page()
