"""A learner leaves one browser in the middle of an item and goes on in another, by the link: nothing is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from lessons import load_lessons
from tests.browser.checks import assert_accessible, settle

LESSON = load_lessons().lessons[0]
WRONG = next(option for option in LESSON.options if not option.right)
OpenPage = Callable[..., Page]


@pytest.mark.slow
def test_an_item_begun_in_one_browser_is_finished_in_another(open_page: OpenPage) -> None:
    first = open_page(f"/lesson?lesson={LESSON.id}")
    first.get_by_text(WRONG.text, exact=True).click()
    first.get_by_role("radio", name="Certain").click()
    first.get_by_role("button", name="Lock in my answer").click()
    expect(first.get_by_role("button", name="Run my cause")).to_be_visible()
    first.goto(first.url.split("/lesson")[0] + "/progress")
    settle(first)
    link = first.get_by_text("/continue/").inner_text().strip()
    first.set_viewport_size({"width": 390, "height": 844})
    assert_accessible(first)
    first.context.close()

    other = open_page("/", size="phone", theme="dark")
    other.goto(link)
    settle(other)
    assert "/continue/" not in other.url, "the token stays in no address that is shown or sent on"
    expect(other.get_by_text("Where you left off")).to_be_visible()
    other.get_by_role("link", name="Go on with this lesson").or_(other.get_by_role("button", name="Go on with this lesson")).first.click()
    expect(other.get_by_role("button", name="Run my cause")).to_be_visible()
    expect(other.get_by_text(WRONG.text).first).to_be_visible()
    assert_accessible(other)

    cause = LESSON.cause(WRONG.causes[0])
    assert cause is not None
    other.locator(f'.sl-pick[data-id="{cause.draws}"]:enabled').click()
    other.get_by_role("button", name="Run my cause").click()
    expect(other.locator("#at-verdict")).to_contain_text("Not this one", timeout=40_000)
    expect(other.locator("#at-verdict")).to_contain_text("It drew what you predicted")
