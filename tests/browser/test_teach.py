"""The instructors' page in a real browser: from the key to a class and its code, a rehearsal with simulated people, no trace of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.checks import assert_accessible, assert_no_sideways_scroll, settle
from tests.browser.server import AppServer

REHEARSAL_MS = 60_000


def sign_in(page: Page, app: AppServer) -> None:
    page.get_by_label("Instructor key").fill((app.data_dir / "instructor.key").read_text().strip())
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Your classes").wait_for()
    settle(page)


def make_class(page: Page, name: str) -> str:
    """Its code."""
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Create the class").click()
    page.get_by_role("heading", name=name).wait_for()
    page.locator(".pg-checks").wait_for()
    settle(page)
    return page.locator(".pg-code").inner_text()


@pytest.mark.parametrize(("theme", "size"), [("light", "desktop"), ("dark", "phone")])
def test_from_the_key_to_a_class(open_page: Callable[..., Page], app: AppServer, theme: str, size: str) -> None:
    page = open_page("/teach", theme=theme, size=size)
    assert_accessible(page)
    assert_no_sideways_scroll(page)
    sign_in(page, app)
    assert_accessible(page)
    code = make_class(page, f"Group on a {size}")
    assert re.fullmatch("[2-9A-HJKMNP-TV-Z]{6}", code)
    picture = page.get_by_role("img", name="QR code of")
    assert picture.evaluate("image => image.complete && image.naturalWidth > 0")
    assert picture.bounding_box()["width"] >= 200  # type: ignore[index]
    expect(page.get_by_role("alert").first).to_contain_text("for a phone, 127.0.0.1 is the phone itself")
    expect(page.locator(".pg-sum")).to_contain_text("Not ready")
    assert_accessible(page)
    assert_no_sideways_scroll(page)
    page.reload()
    settle(page)
    page.get_by_role("heading", name=f"Group on a {size}").wait_for()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Projector").first.click()
    opened.value.wait_for_url(f"**/class/{code}/projector")
    page.get_by_role("button", name="All classes").click()
    page.get_by_role("button", name=f"Group on a {size}").wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Instructor key").wait_for()
    expect(page.get_by_text(code)).to_have_count(0)


def test_a_wrong_key_is_said(open_page: Callable[..., Page], app: AppServer, allow_faults: Callable[[str], None]) -> None:
    allow_faults("403")
    page = open_page("/teach")
    page.get_by_label("Instructor key").fill("not-the-key-at-all")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("That is not the key")).to_be_visible()
    page.get_by_label("Instructor key").fill((app.data_dir / "instructor.key").read_text().strip())
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Your classes").wait_for()


@pytest.mark.slow
def test_a_rehearsal_plays_a_class_and_leaves_no_trace(open_page: Callable[..., Page], app: AppServer) -> None:
    page = open_page("/teach")
    sign_in(page, app)
    code = make_class(page, "To be rehearsed")
    page.get_by_role("button", name="Begin the rehearsal").click()
    tally = page.locator(".st-key-teach-rehearse [role=status]")
    expect(tally).to_contain_text("30 of 30 joined, 30 follow", timeout=REHEARSAL_MS)
    copy = page.locator(".st-key-teach-rehearse").get_by_role("link", name="Console").get_attribute("href").split("/")[1]  # type: ignore[union-attr]
    assert copy != code

    def do(action: str, **arguments: object) -> dict[str, Any]:
        """The console's view after it."""
        answer = page.context.request.post(f"{app.url}/class/{copy}/do", data={"action": action, **arguments})
        assert answer.status == 200, answer.text()
        return dict(answer.json())

    def everybody_votes() -> None:
        deadline = time.monotonic() + REHEARSAL_MS / 1000
        while (count := do("blank", on=False)["answered"]) < 30:
            assert time.monotonic() < deadline, f"{count} of 30 voted"
            time.sleep(0.5)

    do("next")
    everybody_votes()
    first = do("next")["votes"]["first"]
    assert first["total"] == 30
    assert len(first["counts"]) > 1, "they do not all vote alike"
    do("next")
    do("next")
    everybody_votes()
    do("next")
    everybody_votes()
    expect(tally).to_contain_text("30 of 30 joined, 30 follow")
    expect(tally).not_to_contain_text("Not everybody")
    page.get_by_role("button", name="End the rehearsal and delete it").click()
    page.get_by_role("button", name="Begin the rehearsal").wait_for()
    assert page.context.request.get(f"{app.url}/class/{copy}/results.csv").status == 404
    rows = page.context.request.get(f"{app.url}/class/{code}/results.csv").text().strip().splitlines()
    assert len(rows) == 1, "the class itself has only the head of its table"
