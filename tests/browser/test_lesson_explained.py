"""The explained lesson beside a recorded run: every tab in both themes, the whole figure, and the data to take away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from lessons import load_lessons
from lessons.attempts import AttemptStore
from tests.browser.checks import assert_accessible
from tests.browser.server import ROOT, AppServer

LESSON = load_lessons().lessons[0]


@pytest.fixture(scope="module")
def explained(app: AppServer) -> str:
    """The address of an attempt that is explained, with a recorded run of its cause on the stage."""
    store = AttemptStore(app.data_dir)
    attempt = store.predict(store.lock_in(store.start(LESSON.id), LESSON, LESSON.key.id, "certain"), "only0")
    cause = LESSON.cause(LESSON.key.causes[0])
    assert cause is not None
    run_id = recorded_run(app.data_dir, cause.scenario)
    attempt = store.see_verdict(store.record_run(attempt.token, LESSON, cause.id, run_id))
    return f"/lesson?attempt={store.explain(attempt, LESSON).token}"


def recorded_run(data_dir: Path, scenario: str) -> str:
    """The id of a finished run of this experiment: what an earlier test left on record, else one made here."""
    found = finished_run(data_dir, scenario)
    if found is None:
        command = [sys.executable, "-m", "scenarios", "run", scenario, "--json"]
        env = {**os.environ, "SHARDLAB_DATA_DIR": str(data_dir)}
        subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True, timeout=120)
        found = finished_run(data_dir, scenario)
    assert found is not None
    return found


def finished_run(data_dir: Path, scenario: str) -> str | None:
    for config in (data_dir / "runs").glob("*/config.json"):
        events = config.with_name("events.jsonl")
        last = events.read_text().rstrip("\n").rsplit("\n", 1)[-1] if events.exists() else ""
        if json.loads(config.read_text())["config"]["scenario"] == scenario and '"outcome":"finished"' in last.replace(" ", ""):
            return config.parent.name
    return None


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_tab_is_accessible(theme: str, open_page: Callable[..., Page], explained: str) -> None:
    page = open_page(explained, theme=theme)
    expect(page.get_by_role("img", name="Eight workers")).to_be_visible()
    for name in ("Why", "Full story", "Each option", "Code", "On your own job"):
        page.get_by_role("tab", name=name).click()
        expect(page.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
        page.wait_for_timeout(200)
        assert_accessible(page, ".st-key-tell")
    assert_accessible(page)


def test_the_whole_figure_and_the_data(open_page: Callable[..., Page], explained: str) -> None:
    page = open_page(explained)
    for name, kind in (("samples (CSV)", "text/csv"), ("trace (Perfetto)", "application/json")):
        address = page.get_by_role("link", name=name).evaluate("link => link.href")
        answer = page.request.get(address)
        assert answer.status == 200
        assert answer.headers["content-type"].startswith(kind)
    page.get_by_role("button", name="Open as figure").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=20_000)
    dialog.get_by_text("Power", exact=True).click()
    expect(dialog.locator(".js-plotly-plot")).to_contain_text("W")
    assert_accessible(page, '[role="dialog"]')
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
