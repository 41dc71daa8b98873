"""The lesson page through navigation.py: what each stage asks for and refuses, without a browser and without runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from lessons import load_lessons
from lessons.attempts import Attempt, AttemptStore
from lessons.evidence import EvidenceRow
from lessons.learning import get_learning
from pages.lesson_evidence import table_html
from pages.lesson_state import NOT_HERE
from tests.pages.conftest import PretendedRuns

LESSON = load_lessons().lessons[0]
WRONG = next(option for option in LESSON.options if not option.right)
Page = Callable[..., AppTest]


def html_of(page: AppTest) -> str:
    return "\n".join(str(node.proto.body) for node in page.get("html"))


def labels(page: AppTest) -> list[str]:
    return [button.label for button in page.button]


def press(page: AppTest, label: str) -> AppTest:
    next(button for button in page.button if button.label == label).click().run()
    assert not page.exception
    return page


def explained(store: AttemptStore) -> Attempt:
    return store.show_answer(store.start(LESSON.id), LESSON)


def test_an_answer_needs_an_option_and_a_certainty(lesson_page: Page, attempts: AttemptStore) -> None:
    page = lesson_page()
    press(page, "Lock in my answer")
    assert "Choose an answer first." in html_of(page)
    page.radio[0].set_value(WRONG.id)
    press(page, "Lock in my answer")
    assert "Say how sure you are." in html_of(page)
    page.radio[0].set_value(WRONG.id)
    page.button_group[0].set_value("fairly")
    press(page, "Lock in my answer")
    assert "Run my cause" in labels(page)
    attempt = attempts.get(page.query_params["attempt"])
    assert attempt is not None
    assert (attempt.answers, attempt.certainties, attempt.stage) == ((WRONG.id,), ("fairly",), "predict")


def test_a_wrong_answer_gets_its_rebuttal_and_not_the_key(lesson_page: Page, attempts: AttemptStore, pretended: PretendedRuns) -> None:
    attempt = attempts.predict(attempts.lock_in(attempts.start(LESSON.id), LESSON, WRONG.id, "guess"), "all_high")
    attempts.see_verdict(attempt)
    page = lesson_page(attempt=attempt.token)
    shown = html_of(page)
    assert WRONG.rebuttal.html in shown
    assert LESSON.key.rebuttal.html not in shown
    assert LESSON.why.html not in shown
    assert not page.tabs
    press(page, "Try again")
    assert [option.text for option in LESSON.options if option.id != WRONG.id] == page.radio[0].options


def test_an_answer_in_a_tab_that_was_left_behind_uses_up_no_try(lesson_page: Page, attempts: AttemptStore) -> None:
    started = attempts.start(LESSON.id)
    left_behind = lesson_page(attempt=started.token)
    left_behind.radio[0].set_value(LESSON.key.id)
    left_behind.button_group[0].set_value("certain")
    attempts.lock_in(started, LESSON, WRONG.id, "guess")
    press(left_behind, "Lock in my answer")
    assert "This attempt went on in another tab; this is how it stands now." in html_of(left_behind)

    started = attempts.start(LESSON.id)
    left_behind = lesson_page(attempt=started.token)
    left_behind.radio[0].set_value(LESSON.key.id)
    left_behind.button_group[0].set_value("certain")
    answered = attempts.predict(attempts.lock_in(started, LESSON, WRONG.id, "guess"), None)
    second = attempts.try_again(attempts.see_verdict(answered), LESSON)
    press(left_behind, "Lock in my answer")
    assert "This attempt went on in another tab; this is how it stands now." in html_of(left_behind)
    assert attempts.get(started.token) == second


def test_a_deep_link_gives_nothing_away_and_is_used_afterwards(lesson_page: Page, attempts: AttemptStore) -> None:
    cause = LESSON.causes[0]
    page = lesson_page(cause=cause.id, gpu="nonsense")
    assert cause.title not in html_of(page)
    assert "A part of this link was left out" in html_of(page)
    page = lesson_page(cause=cause.id, gpu="h100-80gb", attempt=explained(attempts).token)
    assert page.selectbox[0].value == cause.id
    assert "Knobs (1)" in str([block.proto.popover.label for block in page.get("popover")])


def test_the_fix_runs_with_the_knobs_of_the_link(lesson_page: Page, attempts: AttemptStore, pretended: PretendedRuns) -> None:
    page = lesson_page(gpu="h100-80gb", attempt=explained(attempts).token)
    press(page, "Run the fixed version")
    run = next(iter(pretended.runs.values()))
    assert (run.config.scenario, run.config.gpu) == (LESSON.fix, "h100-80gb")
    assert page.query_params["run"] == run.run_id
    assert next(button for button in page.button if button.label == "Run again").disabled, "while it goes on"
    pretended.end()
    page.run()
    assert not next(button for button in page.button if button.label == "Run again").disabled


@pytest.mark.parametrize("button", ["Lock in my answer", "Run again", "Run the fixed version"])
def test_a_store_that_cannot_be_read_is_said(
    button: str, lesson_page: Page, attempts: AttemptStore, pretended: PretendedRuns, broken_store: Callable[[], None]
) -> None:
    asked = button.startswith("Lock")
    page = lesson_page(attempt=(attempts.start(LESSON.id) if asked else explained(attempts)).token)
    if asked:
        page.radio[0].set_value(WRONG.id)
        page.button_group[0].set_value("fairly")
    elif button == "Run again":
        press(page, "Run the fixed version")
        pretended.end()
        page.run()
    before = len(pretended.runs)
    broken_store()
    press(page, button)
    assert "nothing was saved" in page.error[0].value
    assert len(pretended.runs) == before


def test_a_full_queue_is_a_sentence(lesson_page: Page, attempts: AttemptStore, pretended: PretendedRuns) -> None:
    pretended.full = True
    page = lesson_page(attempt=explained(attempts).token)
    press(page, "Run the fixed version")
    assert "50 runs are waiting already" in html_of(page)


def test_an_unknown_attempt_or_lesson_is_the_question(lesson_page: Page) -> None:
    page = lesson_page(attempt="never-given-out", lesson="no-such-lesson")
    assert "Lock in my answer" in labels(page)
    assert "no-such-lesson" in html_of(page)
    assert NOT_HERE in html_of(page)


def test_an_attempt_that_another_tab_deleted_is_said_to_be_gone(lesson_page: Page) -> None:
    page = lesson_page()
    page.radio[0].set_value(WRONG.id)
    page.button_group[0].set_value("fairly")
    press(page, "Lock in my answer")
    assert NOT_HERE not in html_of(page)
    get_learning().learners.delete(page.session_state["learner"])
    page.run()
    assert NOT_HERE in html_of(page)
    assert "Lock in my answer" in labels(page)


def test_a_figure_of_the_evidence_table_keeps_its_unit_on_its_line() -> None:
    row = EvidenceRow(
        label="A", cause_id="k1", option_id="o1", title="One slow GPU", matches=False, measured=True, reason="no", draws=None,
        source="virtual", cells=("GPU 5: 337 W, others 275 W", "16 to 17 %", "13.2 of 79.2 GiB", "544"),
    )
    html = table_html(("", "Power", "Waits", "Memory", "Samples", "Matches?"), (row,))
    for shown in ("GPU 5: 337\u00a0W, others 275\u00a0W", "16 to 17\u00a0%", "13.2 of 79.2\u00a0GiB", ">544<"):
        assert shown in html
