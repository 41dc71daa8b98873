"""The question: symptom, options and certainty before lock-in, two lines afterwards.

Owns how an answer is asked for. Sees a `PublicView` only, which holds no cause, rebuttal or key.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons import SILHOUETTES, Lesson, load_lessons
from lessons.attempts import Attempt
from lessons.public_view import JudgedAnswer, PublicView
from lessons.reviews import MINUTES
from pages.components.marks import CERTAINTY, WHY, earned, stakes_line
from pages.lesson_moves import lock_in, show_answer
from pages.notices import said

CERTAINTY_SAID = {"guess": "a guess", "fairly": "fairly sure", "certain": "certain"}


def question(view: PublicView) -> None:
    """Title, symptom and the glossary."""
    ids = [lesson.id for lesson in load_lessons().lessons]
    place = f"{ids.index(view.lesson_id) + 1} of {len(ids)} · {view.topic} · {view.minutes} min"
    if view.kind == "review":
        place = f"Before you forget · {MINUTES} min"
    st.html(
        f'<p class="pg-meta">{escape(place)}</p><h1 id="at-question">{escape(title_of(view))}</h1>'
        f'<div class="pg-prose">{view.symptom.html}</div>'
    )


def title_of(view: PublicView) -> str:
    """The lesson's; a review does not remind of it before all is told."""
    return "What is wrong here?" if view.kind == "review" and view.stage != "explained" else view.title


def glossary(view: PublicView) -> None:
    """One pop-over per term."""
    if not view.terms:
        return
    with st.container(key="terms", horizontal=True, gap="small", vertical_alignment="center"):
        st.html('<span class="pg-meta">In plain words:</span>', width="content")
        for term in view.terms:
            with st.popover(term.name, type="tertiary", key=f"term-{term.id}"):
                st.markdown(term.short)


def question_form(lesson: Lesson, view: PublicView) -> None:
    """Options and certainty; nothing is sent before the button is pressed."""
    tried = {judged.option_id: judged.text for judged in view.judged}
    if tried:
        texts = escape(" ".join(f"“{text}”" for text in tried.values()))
        st.html(f'<p class="pg-note" id="at-second_try"><b>Second try, for less.</b> Ruled out by its own run: {texts}</p>')
    texts_by_id = {option.id: option.text for option in view.options if option.id not in tried}
    with st.form(f"form-{lesson.id}-{view.try_no}", border=False, enter_to_submit=False):
        st.radio(view.question, list(texts_by_id), index=None, key=f"option-{lesson.id}-{view.try_no}", format_func=texts_by_id.__getitem__)
        st.segmented_control("How sure are you?", list(CERTAINTY), format_func=CERTAINTY.__getitem__, help=WHY,
                             key=f"sure-{lesson.id}-{view.try_no}")
        st.html(f'<p class="pg-note" id="stakes">{stakes_line(view.stakes, try_no=view.try_no)}</p>')
        with st.container(key="lock", horizontal=True, vertical_alignment="center"):
            shown = (lesson, view.try_no, view.stakes)
            st.form_submit_button("Lock in my answer", type="primary", key="lock-in", on_click=lock_in, args=shown)
            notice()
    glossary(view)
    with st.container(key="after-form"):
        st.button("Show the answer now", type="tertiary", key="escape", on_click=show_answer, args=(lesson,))


def notice() -> None:
    """What the last button could not do, if anything."""
    sentence = said()
    if sentence:
        st.html(f'<p class="pg-said" role="alert">{escape(sentence)}</p>', width="content")


def answered_lines(view: PublicView, attempt: Attempt) -> None:
    """What the form has become: the title with the question behind it, and the answer."""
    with st.container(key="head", horizontal=True, vertical_alignment="center", gap="small", wrap=False):
        st.html(f'<h1 class="pg-small">{escape(title_of(view))}</h1>', width="content")
        with st.popover("Question", type="tertiary", key="question-again"):
            st.html(f'<div class="pg-prose">{view.symptom.html}</div>')
            options = "".join(f"<li>{escape(option.text)}</li>" for option in view.options)
            st.html(f'<div class="pg-prose"><p>{escape(view.question)}</p><ul>{options}</ul></div>')
    judged = view.judged[-1] if view.stage in ("verdict", "explained") and view.judged else None
    mark = "" if view.stage == "predict" else f' id="at-{view.stage}"'
    st.html(f'<div{mark}>{_answer_html(view, attempt)}{_prediction_html(judged)}</div>')


def _answer_html(view: PublicView, attempt: Attempt) -> str:
    """The verdict, a word and a mark and never colour alone, then what was answered."""
    if view.answer is None:
        return '<p class="pg-answer"><span>You asked for the answer.</span></p>'
    verdict = ""
    if view.stage in ("verdict", "explained") and view.judged:
        last = view.judged[-1].verdict
        # On the first try of two, what was lost is said at once; what was earned in all is said at the end.
        marks = earned(view.marks if view.marks is not None else last.marks)
        verdict = f'<b class="pg-right">✓ Right{marks}</b> ' if last.right else f'<b class="pg-wrong">✗ Not this one{marks}</b> '
    sure = f" <i>{CERTAINTY_SAID[attempt.certainty]}</i>" if attempt.certainty else ""
    text = escape(view.answer.text)
    return f'<p class="pg-answer" title="{text}">{verdict}<span>You: “{text}”</span>{sure}</p>'


def _prediction_html(judged: JudgedAnswer | None) -> str:
    if judged is None or judged.predicted is None:
        return ""
    if judged.predicted == judged.drew:
        return f'<p class="pg-note"><b class="pg-right">✓</b> It drew what you predicted: {SILHOUETTES[judged.drew]}.</p>'
    return f'<p class="pg-note">You predicted {SILHOUETTES[judged.predicted]}; it drew {SILHOUETTES[judged.drew]}.</p>'
