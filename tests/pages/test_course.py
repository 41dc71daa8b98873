"""Course, progress, first page and the page for instructors through navigation.py: states, and nothing that names a cause too early."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lessons import load_lessons
from lessons.learners import new_token
from lessons.learning import Learning, get_learning
from lessons.reviews import Due
from pages import learner as learner_module
from pages.learner_progress import due_line
from scenarios.catalog import SCENARIOS
from tests.pages.conftest import PretendedRuns
from tests.pages.test_lesson_page import html_of, labels, press

ROOT = Path(__file__).resolve().parents[2]
LESSONS = load_lessons()
FIRST = LESSONS.lessons[0]
WRONG = next(option for option in FIRST.options if not option.right)


@pytest.fixture
def token(pretended: PretendedRuns, monkeypatch: pytest.MonkeyPatch) -> str:
    """The learner of this test, as the cookie would say."""
    token = new_token()
    monkeypatch.setattr(learner_module, "well_formed", lambda _: False)
    monkeypatch.setattr(learner_module, "new_token", lambda: token)
    return token


def open_page(name: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages/navigation.py"), default_timeout=20).run()
    if name != "home.py":
        page.switch_page(name).run()
    assert not page.exception
    return page


def wrong_once(learning: Learning, token: str) -> None:
    attempt = learning.attempts.lock_in(learning.attempts.open(FIRST, learner=token), FIRST, WRONG.id, "fairly", learner=token)
    learning.attempts.see_verdict(learning.attempts.predict(attempt, None))


def test_a_newcomer_is_led_to_the_first_lesson(token: str) -> None:
    page = open_page("home.py")
    assert FIRST.title in html_of(page)
    assert "Start the lesson" in labels(page)
    course = html_of(open_page("course.py"))
    assert f"0 of {len(LESSONS.lessons)} lessons done" in course
    told = [scenario.title for scenario in SCENARIOS.values() if scenario.title in course]
    assert told == []
    assert "Nothing is kept yet" in html_of(open_page("progress.py"))


def test_what_was_left_open_goes_on_and_its_cause_is_not_named(token: str) -> None:
    wrong_once(get_learning(), token)
    page = open_page("home.py")
    assert "Where you left off" in html_of(page)
    press(page, "Go on with this lesson")
    progress = html_of(open_page("progress.py"))
    assert "met" not in progress.split("Continue elsewhere")[0].split("days.")[1]
    assert "None yet: a cause stands here once you have seen the verdict on it." in progress
    assert token in open_page("progress.py").code[0].value


def test_what_was_mixed_up_is_compared_in_the_lab(token: str, pretended: PretendedRuns) -> None:
    wrong_once(get_learning(), token)
    attempt = get_learning().attempts.open(FIRST, learner=token)
    get_learning().attempts.show_answer(attempt, FIRST, learner=token)
    page = open_page("progress.py")
    assert "You took" in html_of(page)
    press(page, "Compare the two runs")
    assert len(pretended.runs) == 2


def test_deletion_leaves_nothing_and_says_so(token: str) -> None:
    wrong_once(get_learning(), token)
    page = press(open_page("progress.py"), "Yes, delete everything")
    assert "Everything was deleted" in html_of(page)
    assert not get_learning().learners.known(token)


def test_instructors_see_coverage_and_no_key(token: str) -> None:
    shown = html_of(open_page("teach.py"))
    assert all(lesson.title in shown for lesson in LESSONS.lessons)
    assert FIRST.key.rebuttal.html not in shown


@pytest.mark.parametrize(
    ("due", "words"),
    [
        (Due(count=3, minutes=6, next_due_s=None), "3 due, 6 minutes"),
        (Due(count=0, minutes=0, next_due_s=1000.0 + 2 * 86_400), "Nothing is due. The next one comes in 2 days."),
        (Due(count=0, minutes=0, next_due_s=1000.0 + 3_600), "Nothing is due. The next one comes in 1 hour."),
        (Due(count=0, minutes=0, next_due_s=990.0), "Nothing is due. The next one comes in a minute."),
        (Due(count=0, minutes=0, next_due_s=None), "Nothing to come back yet"),
    ],
)
def test_what_is_due_in_words(due: Due, words: str) -> None:
    assert words in due_line(due, 1000.0)


def test_a_review_asks_in_other_words_and_does_not_remind_of_its_lesson(token: str) -> None:
    learning = get_learning()
    learning.attempts.show_answer(learning.attempts.open(FIRST, learner=token), FIRST, learner=token)
    review = learning.attempts.start(FIRST.id, learner=token, kind="review", wording=1)
    page = AppTest.from_file(str(ROOT / "pages/navigation.py"), default_timeout=20)
    page.query_params["attempt"] = review.token
    page.query_params["lesson"] = FIRST.id
    page.run()
    page.switch_page("lesson.py").run()
    shown = html_of(page)
    assert FIRST.wordings[1].html in shown
    assert FIRST.symptom.html not in shown
    assert FIRST.title not in shown
    press(page, "Show the answer now")
    assert FIRST.title in html_of(page)


def test_no_marks_are_lost_where_the_page_said_that_nothing_is(token: str) -> None:
    other = LESSONS.lessons[1]
    page = AppTest.from_file(str(ROOT / "pages/navigation.py"), default_timeout=20)
    page.query_params["lesson"] = other.id
    page.run()
    page.switch_page("lesson.py").run()
    assert "nothing is lost this first time" in html_of(page)
    wrong_once(get_learning(), token)
    page.radio[0].set_value(next(option.id for option in other.options if not option.right))
    page.button_group[0].set_value("certain")
    press(page, "Lock in my answer")
    assert "what this answer can win or lose has changed" in html_of(page)
    assert "nothing is lost" not in html_of(page)
    press(page, "Lock in my answer")
    assert "Run my cause" in labels(page)


def test_from_an_explained_lesson_one_goes_on_to_the_next(token: str) -> None:
    page = AppTest.from_file(str(ROOT / "pages/navigation.py"), default_timeout=20).run()
    page.switch_page("lesson.py").run()
    press(page, "Show the answer now")
    assert "Next: " in html_of(page)
    assert "Go on" in labels(page)
