"""What the preview shows above every page: which lesson, which stage, and everything that is wrong, while the teacher writes.

Owns the bar, and that an edit on disk is seen without a reload. Is drawn in the preview only (`scenarios.settings`), for it gives every
answer away.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import streamlit as st

from lessons import Fault, Lesson, LessonSet, NoLessonsError, load_lessons
from lessons.attempts import Attempt, AttemptStore
from lessons.deep_links import ATTEMPT, CAUSE, LESSON, RUN
from pages.lesson_state import store

LOOK_EVERY_S = 0.5
STAGES = {
    "question": "Question", "wording-0": "Second wording", "wording-1": "Third wording", "predict": "Prediction", "run": "Its run",
    "verdict": "Wrong: verdict", "second_try": "Second try", "explained": "Explained",
}
_SHOWN = "preview-shown"


def preview_bar(page_name: str) -> None:
    """Draw it. Ends the script where the lesson that the address names cannot be shown."""
    found, faults = _now()
    _watch(found, faults)
    with st.container(key="preview", border=True):
        chosen = _chosen(found)
        if chosen is not None:
            _controls(found, chosen, page_name)
        wanted = st.query_params.get(LESSON) or (chosen.id if chosen else "")
        broken = bool(wanted) and (chosen is None or chosen.id != wanted)
        mine = [fault for fault in faults if fault.file.partition("/")[0] in (wanted, fault.file)] if wanted else list(faults)
        _list(mine, open_now=broken or chosen is None or any(fault.kind == "fault" for fault in mine))
        others = len(faults) - len(mine)
        if others:
            st.html(f'<p class="pg-note">{others} more to mend or to do in other lessons of this folder.</p>')
        if broken or chosen is None:
            st.html('<p class="pg-note" role="alert"><b>This lesson cannot be shown until its faults are mended.</b></p>')
            st.stop()


def put_at(attempts: AttemptStore, lesson: Lesson, stage: str) -> Attempt:
    """A new attempt at this stage of the lesson, by the way that a learner would take."""
    if stage.startswith("wording-"):
        return attempts.start(lesson.id, kind="review", wording=int(stage.removeprefix("wording-")))
    attempt = attempts.start(lesson.id)
    if stage == "question":
        return attempt
    wrong = next(option for option in lesson.options if not option.right)
    option = wrong if stage in ("verdict", "second_try") else lesson.key
    cause = lesson.cause(option.causes[0])
    assert cause is not None, "the schema makes sure of it"
    attempt = attempts.lock_in(attempt, lesson, option.id, "fairly")
    if stage == "predict":
        return attempt
    attempt = attempts.predict(attempt, cause.draws)
    if stage == "run":
        return attempt
    attempt = attempts.see_verdict(attempt)
    if stage == "second_try":
        return attempts.try_again(attempt, lesson)
    return attempts.explain(attempt, lesson) if stage == "explained" else attempt


def _now() -> tuple[LessonSet, tuple[Fault, ...]]:
    try:
        found = load_lessons()
    except NoLessonsError as error:
        return LessonSet(lessons=(), faults=error.faults), error.faults
    return found, (*found.faults, *found.advice)


def _watch(found: LessonSet, faults: Sequence[Fault]) -> None:
    """Look for an edit twice a second, and draw everything anew once there is one."""
    drawn = (id(found) if found.lessons else 0, tuple(map(str, faults)))
    st.session_state[_SHOWN] = (drawn, found)  # kept, so that no other set can have its id

    @st.fragment(run_every=LOOK_EVERY_S)
    def look() -> None:
        now, seen = _now()
        if (id(now) if now.lessons else 0, tuple(map(str, seen))) != st.session_state[_SHOWN][0]:
            st.rerun()

    look()


def _chosen(found: LessonSet) -> Lesson | None:
    """The lesson that the address names, else the first; None where there is none."""
    return found.get(st.query_params.get(LESSON, "")) or (found.lessons[0] if found.lessons else None)


def _controls(found: LessonSet, chosen: Lesson, page_name: str) -> None:
    ids = [lesson.id for lesson in found.lessons]
    with st.container(key="preview-controls", horizontal=True, vertical_alignment="center", gap="small"):
        st.html('<b class="pg-meta">Preview</b>', width="content")
        if len(ids) > 1:
            st.selectbox(
                "Lesson", ids, index=ids.index(chosen.id), key=f"preview-lesson-{chosen.id}", label_visibility="collapsed",
                on_change=_go, args=(f"preview-lesson-{chosen.id}",),
            )
        for stage, label in STAGES.items():
            if stage.startswith("wording-") and int(stage.removeprefix("wording-")) >= len(chosen.wordings):
                continue
            if st.button(label, key=f"preview-{stage}", type="tertiary"):
                attempt = put_at(store(), chosen, stage)
                to = {LESSON: chosen.id, ATTEMPT: attempt.token}
                if page_name != "lesson":
                    st.switch_page("lesson.py", query_params=to)
                for name in (CAUSE, RUN):
                    st.query_params.pop(name, None)
                st.query_params.update(to)
                st.rerun()


def _go(key: str) -> None:
    st.query_params.from_dict({LESSON: st.session_state[key]})


def _list(faults: Sequence[Fault], *, open_now: bool) -> None:
    """Every fault, thing to do and piece of advice, on its line."""
    if not faults:
        st.html(
            '<p class="pg-note"><b class="pg-right">✓</b> Nothing is wrong with its texts. '
            "<code>check --run</code> measures its claims.</p>"
        )
        return
    counts = {kind: sum(fault.kind == kind for fault in faults) for kind in ("fault", "to do", "advice")}
    words = {"fault": "to mend", "to do": "to do", "advice": "to improve"}
    head = ", ".join(f"{number} {words[kind]}" for kind, number in counts.items() if number)
    rows = "".join(
        f"<li><code>{escape(fault.file)}:{fault.line}</code> {escape(fault.text)}</li>" for fault in faults
    )
    with st.expander(head, expanded=open_now, key=f"preview-faults-{open_now}"):
        st.html(f'<ul class="pg-prose" role="status">{rows}</ul>')
