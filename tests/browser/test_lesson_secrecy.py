"""From lock-in to the verdict, the wire tells of the learner's own cause and of nothing else: frames, feed, trace, addresses and DOM."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from lessons import load_lessons
from scenarios.catalog import SCENARIOS
from tests.browser.checks import settle
from tests.browser.lesson_wire import Wire, secrets_of
from tests.browser.server import AppServer

LESSON = load_lessons().lessons[0]
CAUSE = next(cause for cause in LESSON.causes if cause.draws == "all_crash")
"""A wrong one whose run is over early."""


def test_until_the_verdict_only_the_own_cause_is_named(app: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page("/healthz", wait=False)
    wire = Wire(page)
    page.goto(app.url + "/lesson")
    settle(page)
    option = LESSON.option_of(CAUSE.id)
    assert option is not None
    page.get_by_text(option.text, exact=True).click()
    page.get_by_role("radio", name="Fairly").click()
    page.get_by_role("button", name="Lock in my answer").click()
    page.locator('.sl-pick[data-id="all_low"]').click()
    page.get_by_role("button", name="Run my cause").click()
    expect(page.locator(".sl-root")).to_have_attribute("data-state", "running", timeout=40_000)
    page.wait_for_timeout(1_000)
    # A run that was stopped has no verdict: the stage stays, and the whole record can be read.
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator(".sl-root")).to_have_attribute("data-state", "stopped", timeout=20_000)
    settle(page)
    seen = wire.text() + wire.feeds()
    assert option.text in seen, "the frames were read"
    assert '"period_ms"' in seen, "the feed was read"
    assert "traceEvents" in seen, "the trace was read"
    secrets = [secret for secret in secrets_of(LESSON, SCENARIOS) if secret not in (CAUSE.title, CAUSE.scenario)]
    assert [secret for secret in secrets if secret in seen] == []
