"""The instructors' page in a real browser: from the key to a class and its code. Its rehearsal is part of the class in test_classroom."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.checks import assert_accessible, assert_no_sideways_scroll, settle
from tests.browser.server import AppServer


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
