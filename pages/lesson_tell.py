"""The left half after lock-in: what comes next, the verdict, and the explanation in tabs.

Owns the order of texts. Nothing of the key is shown before the stage `explained`.
"""

from __future__ import annotations

from html import escape

import streamlit as st

from lessons import Lesson, OwnJobCheck, Prose
from lessons.code_diff import scenario_code, scenario_diff
from lessons.experiments import Shown, differences, shown_as
from lessons.public_view import PublicView
from pages.components.code import diff_html
from pages.components.infographic import infographic
from pages.lesson_ask import glossary
from pages.lesson_controls import experiment_shown
from pages.lesson_knobs import knobs
from pages.lesson_moves import FIX, show_answer, start_run, try_again
from pages.lesson_next import lesson_next


def tell(lesson: Lesson, view: PublicView) -> None:
    """What the left half says at this stage."""
    if view.stage == "predict":
        st.html('<p class="pg-note">Next: what would the run of your cause draw, if you are right? Choose one of the five pictures.</p>')
        _escape(lesson)
    elif view.stage == "run":
        st.html(
            '<h2 class="pg-h">Watch the run of your cause</h2>'
            '<p class="pg-note">Compare its lanes with the dashed outline, your prediction. The verdict comes when it ends.</p>'
        )
        glossary(view)
        _escape(lesson)
    elif view.stage == "verdict":
        st.html('<h2 class="pg-h">Its own run speaks against it</h2>')
        prose(view.judged[-1].verdict.rebuttal)
        with st.container(key="next", horizontal=True, vertical_alignment="center"):
            st.button("Try again", type="primary", key="again", on_click=try_again, args=(lesson,))
            st.button("Show the answer now", type="tertiary", key="escape", on_click=show_answer, args=(lesson,))
    elif view.lesson is not None:
        explanation(view.lesson, view)
        lesson_next()


def _escape(lesson: Lesson) -> None:
    st.button("Show the answer now", type="tertiary", key="escape", on_click=show_answer, args=(lesson,))


def prose(text: Prose) -> None:
    """A text of a lesson; it was sanitised when it was loaded."""
    st.html(f'<div class="pg-prose">{text.html}</div>')


def explanation(lesson: Lesson, view: PublicView) -> None:
    """The five tabs."""
    why, story, each, code, own = st.tabs(["Why", "Full story", "Each option", "Code", "On your own job"], key="tabs")
    with why:
        prose(lesson.why)
        infographic(lesson.infographic, key="infographic")
        for title, text in (("In the exam", lesson.exam_box), ("On call: check these first", lesson.on_call_box)):
            st.html(f'<section class="pg-box"><h3>{title}</h3><div class="pg-prose">{text.html}</div></section>')
    with story:
        prose(lesson.full_story)
        items = "".join(f'<li><a href="{escape(s.url)}">{escape(s.title)}</a>: {escape(s.says)}</li>' for s in lesson.sources)
        st.html(f'<div class="pg-prose"><h3>Sources</h3><ul>{items}</ul></div>')
    with each:
        for option in lesson.options:
            mark = '<b class="pg-right">✓ Right</b>' if option.right else '<b class="pg-wrong">✗</b>'
            st.html(f'<div class="pg-prose pg-option"><h3>{mark} {escape(option.text)}</h3>{option.rebuttal.html}</div>')
    with code:
        code_tab(lesson, view)
    with own:
        for check in lesson.on_your_own_job:
            own_job(check)
        st.html(f'<div class="pg-prose"><h3>What to try</h3>{lesson.what_to_try.html}</div>')


def code_tab(lesson: Lesson, view: PublicView) -> None:
    """What the shown script does differently from the healthy one, and the button that runs the healthy one."""
    shown = ill_experiment(lesson, view)
    fix(lesson, shown, key="apply-fix")
    with st.expander("The whole script"):
        st.code(scenario_code(shown.scenario.name), language=None, wrap_lines=True)


def ill_experiment(lesson: Lesson, view: PublicView) -> Shown:
    """The experiment on the stage; where that is the healthy one, that of the cause that matches the question."""
    shown = experiment_shown(lesson, view)
    return shown_as(lesson, next(c.id for c in lesson.causes if c.matches_question)) if shown.name == lesson.fix else shown


def fix(lesson: Lesson, shown: Shown, *, key: str) -> bool:
    """The difference to the healthy script, and one button that runs the fixed version. True when it was pressed."""
    healthy = shown_as(lesson, FIX)
    st.html(f'<p class="pg-note"><b>{escape(shown.title)}.</b> {escape(shown.what)} The fix: {escape(healthy.what)}</p>')
    pressed = st.button("Run the fixed version", type="primary", key=key, on_click=start_run, args=(lesson, FIX, knobs()))
    if told := knob_differences_html(shown, healthy):
        st.html(told)
    if shown.scenario != healthy.scenario:
        names = shown.scenario.name, healthy.scenario.name
        st.html(diff_html(scenario_diff(*names), left=f"{names[0]}.py", right=f"{names[1]}.py, the fix"))
    return pressed


def knob_differences_html(shown: Shown, healthy: Shown) -> str:
    """What two experiments differ in beside their scripts; says so where the script is one and the same."""
    found = differences(shown.config, healthy.config)
    knobs = "".join(f"<li>{escape(one.label)}: {escape(one.own)}; in the fix {escape(one.other)}</li>" for one in found)
    if shown.scenario == healthy.scenario:
        same = f"Both run one and the same script, {escape(shown.scenario.name)}.py: the difference is not in the code."
        return f'<div class="pg-prose"><p>{same}</p><ul>{knobs}</ul></div>'
    return f'<div class="pg-prose"><p>Beside the code, this differs:</p><ul>{knobs}</ul></div>' if knobs else ""


@st.dialog("Apply the fix", width="large")
def fix_dialog(lesson: Lesson, shown: Shown) -> None:
    """The same, called from the picture."""
    if fix(lesson, shown, key="apply-fix-dialog"):
        st.rerun()  # closes the dialog


def own_job(check: OwnJobCheck) -> None:
    """One command, with what it prints when all is well and when it is not."""
    st.html(f'<div class="pg-prose"><h3>{escape(check.title)}</h3>{check.why.html}</div>')
    st.code(check.command, language=None, wrap_lines=True)  # the highlighter's colours are too pale
    for mark, word, kind, output in (("✓", "healthy", "well", check.healthy), ("✗", "ill", "ill", check.ill)):
        colour = "pg-right" if kind == "well" else "pg-wrong"
        st.html(f'<p class="pg-note"><b class="{colour}">{mark} {word}</b></p><pre class="pg-out pg-{kind}">{escape(output)}</pre>')
