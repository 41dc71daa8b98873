"""The page of a mystery run through navigation.py: what it asks, what it never says too early, and what it says afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lessons.attempts import AttemptStore
from lessons.learning import get_learning
from pages import learner as learner_module
from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from tests.pages.conftest import PretendedRuns
from tests.pages.test_lesson_page import LESSON, html_of, labels, press

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def mystery_page(pretended: PretendedRuns) -> Callable[..., AppTest]:
    def open_one(**query: str) -> AppTest:
        page = AppTest.from_file(str(ROOT / "pages/navigation.py"), default_timeout=20)
        for name, value in query.items():
            page.query_params[name] = value
        page.run()
        page.switch_page("mystery.py").run()
        assert not page.exception
        return page

    return open_one


def test_a_run_is_started_named_and_told(mystery_page: Callable[..., AppTest], pretended: PretendedRuns) -> None:
    page = press(mystery_page(), "Start a mystery run")
    (run,) = pretended.runs.values()
    assert run.hidden
    assert run.config.scenario not in html_of(page)
    assert run.config.scenario not in page.radio[0].options
    assert SCENARIOS[run.config.scenario].what not in html_of(page) + " ".join(page.radio[0].options)

    press(page, "Name the cause")
    assert "Name a cause first." in html_of(page)
    page.radio[0].set_value("c0")
    page.selectbox[0].set_value("power")
    page.button_group[0].set_value("fairly")
    press(page, "Name the cause")
    told = html_of(page)
    assert "It was" in told
    assert "What tells it" in told
    assert "Another one" in labels(page)
    assert not pretended.runs[run.run_id].hidden


def test_a_reload_comes_back_to_the_verdict_and_somebody_else_sees_nothing(
    mystery_page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = press(press(mystery_page(), "Start a mystery run"), "Tell me instead")
    token = page.query_params["mystery"]
    token = token[0] if isinstance(token, list) else token
    assert "Start a mystery run" in labels(mystery_page(mystery=token)), "without the cookie it is somebody else"
    mystery = get_learning().mysteries
    assert mystery.get(token, learner_module.new_token()) is None


@pytest.mark.parametrize("page", ["lab", "lesson"])
def test_its_run_in_the_address_of_another_page_says_nothing(
    page: str, pretended: PretendedRuns, lab_page: Callable[..., AppTest], lesson_page: Callable[..., AppTest], attempts: AttemptStore
) -> None:
    """Found by its id it would give its configuration away: as a run, or as one to compare with."""
    run = pretended.start(RunConfig.parse({"scenario": "rank0_loading", "gpu": "rtx4090-24gb", "seed": 4711}), viewer="a", hidden=True)
    token = attempts.show_answer(attempts.start(LESSON.id), LESSON).token

    def shown(run_id: str) -> str:
        opened = lab_page(run=run_id, pin=run_id) if page == "lab" else lesson_page(attempt=token, run=run_id, lesson=LESSON.id)
        widgets = [repr(widget.value) for widget in (*opened.selectbox, *opened.number_input, *opened.radio)]
        return " | ".join([html_of(opened), *labels(opened), *widgets]).replace(run_id, "")

    assert shown(run.run_id) == shown("f" * 16), "as that of a run that does not exist"


@pytest.mark.parametrize("button", ["Name the cause", "Tell me instead"])
def test_a_store_that_cannot_be_read_is_said_and_the_run_stays_open(
    button: str, mystery_page: Callable[..., AppTest], broken_store: Callable[[], None]
) -> None:
    page = press(mystery_page(), "Start a mystery run")
    page.radio[0].set_value("c0")
    page.selectbox[0].set_value("power")
    page.button_group[0].set_value("fairly")
    broken_store()
    press(page, button)
    assert "nothing was saved" in page.error[0].value


def test_a_mystery_run_that_was_deleted_elsewhere_is_said_to_be_gone(mystery_page: Callable[..., AppTest]) -> None:
    page = press(mystery_page(), "Start a mystery run")
    get_learning().learners.delete(page.session_state["learner"])
    press(page, "Tell me instead")
    assert "was deleted" in html_of(page)
    assert "Start a mystery run" in labels(page)
