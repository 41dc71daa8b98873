"""The live picture in a real Streamlit app: reruns neither remount it nor interrupt its feed, and leaving it closes the feed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import ROOT, AppServer

SCRIPT = Path(__file__).with_name("lanes_app.py")


@pytest.mark.slow
def test_reruns_keep_the_picture_and_its_feed(own_app: Callable[..., AppServer], open_page: Callable[..., Page]) -> None:
    server = own_app(script=SCRIPT, ready_path="/opened", env={"PYTHONPATH": str(ROOT)})
    page = open_page("/", base=server.url, theme="dark")
    root = page.locator(".sl-root")
    expect(root).to_have_attribute("data-state", "running")
    expect(root).to_have_class("sl-root sl-dark")
    page.evaluate("document.querySelector('.sl-root').dataset.mark = 'same'")

    page.get_by_role("radio", name="Memory").click()
    for number in (2, 3, 4):  # each seen before the next is asked for: Streamlit makes one rerun of two requests in a row
        page.get_by_role("button", name="Rerun").click()
        expect(page.get_by_text(f"script run {number}")).to_be_visible()
    expect(root).to_have_attribute("data-mark", "same")
    expect(page.get_by_role("radio", name="Memory")).to_have_attribute("aria-checked", "true")
    assert feeds(page, server) == "1 1", "one feed was opened, and it is open still"

    page.get_by_role("button", name="Other metric").click()
    expect(page.get_by_role("radio", name="Power")).to_have_attribute("aria-checked", "true")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("asked: stop endless")).to_be_visible()
    expect(root).to_have_attribute("data-mark", "same")
    assert feeds(page, server) == "1 1"

    page.get_by_role("button", name="Other run").click()
    expect(page.locator(".sl-main")).to_have_text("Live 78.0 s")
    expect(root).to_have_attribute("data-mark", "same")
    page.get_by_text("Hide").click()
    expect(root).to_have_count(0)
    page.wait_for_timeout(400)
    assert feeds(page, server) == "2 0", "leaving closes the feed"


def feeds(page: Page, server: AppServer) -> str:
    """Feeds opened so far, and open now."""
    return page.request.get(f"{server.url}/opened").text()
