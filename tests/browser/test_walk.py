"""The course in a real browser: every lesson answered wrong and right, every experiment of it run, from the first visit to the fix.

Runs are quick here: what is on record is played from there and skipped to its end. A lesson takes most of a minute, so that `make test`
walks through one of them; `SHARDLAB_TEST_WALK=quick` walks through all, `SHARDLAB_TEST_WALK=live` through the app as it is, with a fresh
run each time. Lessons come from the loader: a new one is walked through by itself.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from lessons import Cause, Lesson, Option, load_lessons
from tests.browser.checks import SIZES, FaultLog, assert_accessible, assert_no_sideways_scroll, settle
from tests.browser.conftest import UNMEASURED
from tests.browser.server import ROOT, AppServer

WALK = os.environ.get("SHARDLAB_TEST_WALK", "")
LIVE = WALK == "live"
LESSONS = load_lessons().lessons if WALK else [lesson for lesson in load_lessons().lessons if lesson.id == "gpu0-a-bit-fuller"]
RUN_MS = 120_000
SCRIPT = Path(__file__).with_name("quick_app.py")


@pytest.fixture(scope="module")
def walked(app: AppServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """The app to walk through, with what the session's app has on record by now."""
    if LIVE:
        yield app
        return
    folder = tmp_path_factory.mktemp("walk")
    for end in (app.data_dir / "runs").glob("*/events.jsonl"):
        if '"outcome"' in end.read_text():
            shutil.copytree(end.parent, folder / "runs" / end.parent.name)
    with AppServer(folder, script=SCRIPT, cwd=ROOT, env={"PYTHONPATH": str(ROOT), **UNMEASURED}) as server:
        yield server


@pytest.fixture(scope="module")
def visitor(browser: Browser, walked: AppServer) -> Iterator[Page]:
    """One learner, one tab, all the way."""
    context = browser.new_context(**SIZES["desktop"], color_scheme="light")
    context.set_default_timeout(15_000)
    yield context.new_page()
    context.close()


class Walk:
    """What a learner does in one lesson."""

    def __init__(self, page: Page, lesson: Lesson) -> None:
        self.page, self.lesson = page, lesson
        self.runs: dict[str, str] = {}
        """The run last shown of each experiment, by the key of its config."""

    def open(self, url: str) -> None:
        self.page.goto(f"{url}/lesson?lesson={self.lesson.id}")
        settle(self.page)
        expect(self.page.get_by_role("button", name="Lock in my answer")).to_be_visible()

    def answer(self, option: Option, sure: str) -> None:
        """Lock in, predict what the cause draws, run it to its end."""
        cause = self.lesson.cause(option.causes[0])
        assert cause is not None
        self.page.get_by_text(option.text, exact=True).click()
        self.page.get_by_role("radio", name=sure).click()
        self.page.get_by_role("button", name="Lock in my answer").click()
        self.page.locator(f'.sl-pick[data-id="{cause.draws}"]:enabled').click()
        self.page.get_by_role("button", name="Run my cause").click()
        self._watch()
        self.runs[self.lesson.config_of(cause.scenario).key] = self._shown()

    def _watch(self) -> None:
        """Until the verdict: to its end by itself, or by the button that a record has."""
        skip = self.page.get_by_role("button", name="Skip to end")
        over = self.page.locator("#at-verdict, #at-explained")
        expect(skip.or_(over).first).to_be_visible(timeout=RUN_MS)
        if not LIVE and skip.is_visible():
            skip.click()
        expect(over).to_be_visible(timeout=RUN_MS)
        settle(self.page)

    def try_again(self) -> None:
        self.page.get_by_role("button", name="Try again").click()
        expect(self.page.locator("#at-second_try")).to_be_visible()

    def run(self, cause: Cause) -> None:
        """Choose a cause of the explained lesson and see its run's end."""
        self.page.get_by_role("combobox", name="Cause").click()
        self.page.get_by_role("option", name=cause.title, exact=True).click()
        self.chosen(cause.title)
        self.ended(cause.scenario)

    def chosen(self, beginning: str) -> None:
        """The selector stands at this cause; while the page is drawn anew there are two of it."""
        expect(self.page.locator(f'input[aria-label="Cause"][value^={json.dumps(beginning)}]')).to_have_count(1, timeout=RUN_MS)
        expect(self.page.get_by_role("combobox", name="Cause")).to_have_count(1)
        settle(self.page)

    def ended(self, experiment: str) -> None:
        """The picture shows a run of this experiment, asked for where there is none yet, that has ended as it should."""
        key = self.lesson.config_of(experiment).key
        self._past_the_last_picture(key)
        button = self.page.locator(".sl-root").get_by_role("button", name="Run it")
        if not self._shown():
            button.click()
        root = self.page.locator('.sl-root[data-over="true"]:not([data-run=""])')
        expect(root).to_be_visible(timeout=RUN_MS)
        settle(self.page)
        self.runs[key] = self._shown()
        assert root.get_attribute("data-state") in ("finished", "out_of_memory", "timeout"), self.page.locator(".sl-status").inner_text()

    def _past_the_last_picture(self, key: str) -> None:
        """The picture has taken note of another choice: it shows no run, or one that is not another experiment's."""
        others = [run_id for other, run_id in self.runs.items() if other != key]
        without = "".join(f'[data-run="{run_id}"],' for run_id in others).rstrip(",")
        expect(self.page.locator(f".sl-root[data-run]:not({without or 'html'})")).to_have_count(1, timeout=RUN_MS)

    def _shown(self) -> str:
        return self.page.locator(".sl-root").get_attribute("data-run") or ""

    def read_all(self) -> None:
        """Every tab, and what axe-core says of it."""
        for name in ("Full story", "Each option", "Code", "On your own job", "Why"):
            self.page.get_by_role("tab", name=name).click()
            expect(self.page.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
            if LIVE or name in ("Code", "Why"):  # the others are the same elements in every lesson
                self.page.wait_for_timeout(150)
                assert_accessible(self.page, ".st-key-tell")


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.id)
def test_wrong_then_right_and_every_experiment(lesson: Lesson, visitor: Page, walked: AppServer) -> None:
    faults = FaultLog()
    faults.watch(visitor)
    walk = Walk(visitor, lesson)
    wrong = next(option for option in lesson.options if not option.right)

    walk.open(walked.url)
    assert_accessible(visitor)
    walk.answer(wrong, "Fairly")
    expect(visitor.locator("#at-verdict")).to_contain_text("Not this one")
    assert_accessible(visitor)
    walk.try_again()
    walk.answer(lesson.key, "Certain")
    expect(visitor.locator("#at-explained")).to_contain_text("✓ Right")  # with what the wrong one cost
    expect(visitor.locator("#at-explained")).to_contain_text("It drew what you predicted")
    assert_accessible(visitor)
    assert_no_sideways_scroll(visitor)
    walk.read_all()
    for cause in lesson.causes:
        walk.run(cause)
    visitor.get_by_role("tab", name="Code").click()
    visitor.get_by_role("button", name="Run the fixed version").first.click()
    walk.chosen("The healthy script")
    walk.ended(lesson.fix)

    walk.open(walked.url)
    walk.answer(lesson.key, "Certain")
    expect(visitor.locator("#at-explained")).to_contain_text("✓ Right, +3 marks")
    faults.check()
