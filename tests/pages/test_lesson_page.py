"""The lesson page at each stage, through navigation.py: what it shows, what it keeps to itself, and what its buttons do.

Live parts (lanes, silhouettes, focus) are in tests/browser: AppTest does not run them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from lessons import Lesson
from lessons.attempts import Attempt, AttemptStore
from scenarios.catalog import SCENARIOS
from tests.pages.conftest import NAVIGATION, RecordedRuns

OpenLesson = Callable[..., AppTest]
AtStage = Callable[..., Attempt]


def sent(page: AppTest) -> str:
    """Everything that this script run has put into the browser, as text."""
    return " ".join(_texts(page._tree))


def _texts(node: Any) -> Iterator[str]:
    proto = getattr(node, "proto", None)
    if proto is not None:
        yield proto.SerializeToString().decode("utf-8", "replace")
    for child in getattr(node, "children", {}).values():
        yield from _texts(child)


def button(page: AppTest, label: str) -> Any:
    found = [one for one in page.button if one.label == label]
    assert found, f"no button {label!r} among {[one.label for one in page.button]}"
    return found[0]


def stage_of(page: AppTest) -> str:
    found = re.search(r'data-stage="(\w+)"', sent(page))
    assert found
    return found.group(1)


def secrets_of(lesson: Lesson) -> list[str]:
    """What must not be sent before lock-in: names of experiments, titles of causes, rebuttals, explanations."""
    texts = [option.rebuttal.markdown for option in lesson.options]
    texts += [lesson.why.markdown, lesson.full_story.markdown, lesson.exam_box.markdown, lesson.on_call_box.markdown]
    told = " ".join([lesson.symptom.markdown, *(option.text for option in lesson.options)])  # "sharded" is also a word
    names = [name for name in SCENARIOS if name not in told]
    return [*names, *(cause.title for cause in lesson.causes), *(cause.shows for cause in lesson.causes), *(text[:40] for text in texts)]


def test_the_first_page_leads_to_the_lesson(recorded_runs: RecordedRuns, lesson: Lesson) -> None:
    page = AppTest.from_file(str(NAVIGATION), default_timeout=30).run()
    assert not page.exception
    button(page, "Start the lesson").click().run()
    assert stage_of(page) == "question"
    assert page.radio[0].options == [option.text for option in lesson.options]


def test_the_question_gives_nothing_away(open_lesson: OpenLesson, lesson: Lesson) -> None:
    text = sent(open_lesson())
    assert lesson.options[0].text in text
    assert [secret for secret in secrets_of(lesson) if secret in text] == []


@pytest.mark.parametrize("stage", ["predict", "run"])
def test_after_lock_in_only_the_own_cause_is_named(stage: str, open_lesson: OpenLesson, at_stage: AtStage, lesson: Lesson) -> None:
    attempt = at_stage(stage, right=False)
    own = lesson.cause(lesson.option(attempt.answer or "").causes[0])  # type: ignore[union-attr]
    assert own is not None
    page = open_lesson(attempt=attempt.token)
    assert stage_of(page) == stage
    # The word for the experiment that the own cause is about may be part of its title; its name may not.
    found = [secret for secret in secrets_of(lesson) if secret in sent(page) and secret != own.title]
    assert found == []


def test_nothing_is_locked_in_without_answer_and_certainty(open_lesson: OpenLesson, lesson: Lesson) -> None:
    page = open_lesson()
    button(page, "Lock in my answer").click().run()
    assert "Choose an answer first." in sent(page)
    page.radio[0].set_value(lesson.options[0].id)
    button(page, "Lock in my answer").click().run()
    assert "Say how sure you are." in sent(page)
    assert stage_of(page) == "question"
    assert "attempt" not in page.query_params


def test_locking_in_asks_for_the_prediction_and_puts_the_attempt_into_the_url(
    open_lesson: OpenLesson, lesson: Lesson, store: AttemptStore, recorded_runs: RecordedRuns
) -> None:
    page = open_lesson()
    page.radio[0].set_value(lesson.key.id)
    page.button_group[0].set_value("certain")
    button(page, "Lock in my answer").click().run()
    assert not page.exception
    assert stage_of(page) == "predict"
    attempt = store.get(page.query_params["attempt"])
    assert attempt is not None
    assert (attempt.answer, attempt.certainty) == (lesson.key.id, "certain")
    assert button(page, "Run my cause").disabled
    assert recorded_runs.started == []


def test_a_wrong_first_answer_gets_its_own_rebuttal_and_not_the_key(open_lesson: OpenLesson, at_stage: AtStage, lesson: Lesson) -> None:
    attempt = at_stage("verdict", right=False)
    wrong = lesson.option(attempt.answer or "")
    assert wrong is not None
    page = open_lesson(attempt=attempt.token)
    text = sent(page)
    assert wrong.rebuttal.html in text
    others = [option for option in lesson.options if option is not wrong]
    assert [option.id for option in others if option.rebuttal.html in text] == []
    assert lesson.why.html not in text
    button(page, "Try again").click().run()
    assert stage_of(page) == "second_try"
    assert wrong.text not in page.radio[0].options


def test_the_right_answer_is_explained_with_everything(open_lesson: OpenLesson, at_stage: AtStage, lesson: Lesson) -> None:
    page = open_lesson(attempt=at_stage("explained").token)
    text = sent(page)
    assert [tab.label for tab in page.tabs] == ["Why", "Full story", "Each option", "Code", "On your own job"]
    for part in (lesson.why, lesson.full_story, lesson.exam_box, lesson.on_call_box, *(option.rebuttal for option in lesson.options)):
        assert part.html in text
    assert lesson.on_your_own_job[0].command in [code.value for code in page.code]


@pytest.mark.parametrize("stage", ["predict", "run", "verdict"])
def test_the_answer_can_be_asked_for_at_any_stage(stage: str, open_lesson: OpenLesson, at_stage: AtStage, store: AttemptStore) -> None:
    attempt = at_stage(stage, right=False)
    page = open_lesson(attempt=attempt.token)
    button(page, "Show the answer now").click().run()
    assert not page.exception
    assert stage_of(page) == "explained"
    after = store.get(attempt.token)
    assert after is not None
    assert after.shown


def test_the_answer_can_be_asked_for_at_once(open_lesson: OpenLesson, recorded_runs: RecordedRuns, lesson: Lesson) -> None:
    page = open_lesson()
    button(page, "Show the answer now").click().run()
    assert not page.exception
    assert stage_of(page) == "explained"
    assert recorded_runs.started == []
    button(page, "Run").click().run()
    assert not page.exception
    matching = [cause.scenario for cause in lesson.causes if cause.matches_question]
    assert [run.scenario for run in recorded_runs.started] == matching


def test_two_tabs_do_not_overwrite_each_other(open_lesson: OpenLesson, at_stage: AtStage, lesson: Lesson, store: AttemptStore) -> None:
    attempt = at_stage("verdict", right=False)
    first, second = open_lesson(attempt=attempt.token), open_lesson(attempt=attempt.token)
    button(first, "Try again").click().run()
    first.radio[0].set_value(lesson.key.id)
    first.button_group[0].set_value("guess")
    button(first, "Lock in my answer").click().run()
    assert stage_of(first) == "predict"
    button(second, "Try again").click().run()
    assert not second.exception
    assert stage_of(second) == "predict"
    after = store.get(attempt.token)
    assert after is not None
    assert after.answer == lesson.key.id


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"attempt": "../../etc"}, "attempt"), ({"lesson": "none-such"}, "lesson"), ({"gpu": "banana"}, "gpu"), ({"batch": "0"}, "batch"),
        ({"model": "<script>"}, "model"),
    ],
)  # fmt: skip
def test_a_wrong_link_says_so_and_shows_the_question(query: dict[str, str], named: str, open_lesson: OpenLesson) -> None:
    page = open_lesson(**query)
    assert stage_of(page) == "question"
    assert f"left out: {named}=" in sent(page).replace("'", "").replace("&#x27;", "")
    assert "<script>" not in sent(page)


def test_an_unknown_attempt_begins_anew(open_lesson: OpenLesson) -> None:
    assert stage_of(open_lesson(attempt="never-given-out-00000")) == "question"


def test_a_link_to_a_cause_gives_nothing_away_before_lock_in(open_lesson: OpenLesson, lesson: Lesson) -> None:
    text = sent(open_lesson(cause=lesson.key.causes[0], gpu="h100-80gb"))
    assert [secret for secret in secrets_of(lesson) if secret in text] == []


def test_knobs_of_the_link_go_into_the_next_run(open_lesson: OpenLesson, at_stage: AtStage, recorded_runs: RecordedRuns) -> None:
    page = open_lesson(attempt=at_stage("explained").token, gpu="h100-80gb", batch="128")
    button(page, "Run again").click().run()
    assert not page.exception
    assert (recorded_runs.started[-1].gpu, recorded_runs.started[-1].batch) == ("h100-80gb", 128)


def test_the_fix_runs_the_healthy_script(open_lesson: OpenLesson, at_stage: AtStage, recorded_runs: RecordedRuns, lesson: Lesson) -> None:
    page = open_lesson(attempt=at_stage("explained").token)
    button(page, "Run the fixed version").click().run()
    assert not page.exception
    assert recorded_runs.started[-1].scenario == lesson.fix
    assert recorded_runs.paces[-1] == "live"


def test_the_other_half_of_the_answer_can_be_run(
    open_lesson: OpenLesson, at_stage: AtStage, recorded_runs: RecordedRuns, lesson: Lesson
) -> None:
    page = open_lesson(attempt=at_stage("explained").token)
    other = lesson.cause(lesson.key.causes[1])
    assert other is not None
    button(page, f"Run the other half: {other.title}").click().run()
    assert not page.exception
    assert recorded_runs.started[-1].scenario == other.scenario


def test_a_long_epoch_can_be_fast_forwarded(
    open_lesson: OpenLesson, at_stage: AtStage, recorded_runs: RecordedRuns, lesson: Lesson, store: AttemptStore
) -> None:
    attempt = at_stage("verdict")
    run = recorded_runs.start(recorded_runs.started[-1], viewer=attempt.token)
    recorded_runs.end(run.run_id, epoch_seconds=32.0, epoch_measured=False, epochs_seen=0.12)
    store.explain(store.record_run(attempt.token, lesson, lesson.key.causes[0], run.run_id), lesson)
    page = open_lesson(attempt=attempt.token)
    assert "12 % of the epoch; at this rate it takes 32 s" in sent(page)
    button(page, "Fast-forward").click().run()
    assert not page.exception
    assert (recorded_runs.started[-1].epochs, recorded_runs.paces[-1]) == (1, "fast")


def test_a_full_queue_is_a_sentence(open_lesson: OpenLesson, at_stage: AtStage, recorded_runs: RecordedRuns) -> None:
    page = open_lesson(attempt=at_stage("explained").token)
    recorded_runs.full = True
    button(page, "Run again").click().run()
    assert not page.exception
    assert "50 runs are waiting already" in sent(page)


def test_the_evidence_holds_recordings_only(open_lesson: OpenLesson, at_stage: AtStage, lesson: Lesson) -> None:
    text = sent(open_lesson(attempt=at_stage("explained").token))
    assert text.count("not measured yet") == len(lesson.causes) - 1
    assert f"{len(lesson.causes) - 1} of {len(lesson.causes)} " in text
    assert "24 to 30 %" not in text
    assert "✓ yes" in text


def test_pages_import_neither_torch_nor_figures() -> None:
    """The first page must not wait for either. (Streamlit itself imports Plotly.)"""
    script = (
        "import sys\n"
        "import pages.home, pages.routes\n"
        "from pages import lesson_ask, lesson_below, lesson_stage, lesson_state, lesson_tell\n"
        "print([name for name in ('torch', 'pages.components.figures') if name in sys.modules])\n"
    )
    root = NAVIGATION.parents[1]
    result = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"
