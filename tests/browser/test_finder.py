"""The symptom finder and the printable page in a real browser: by keyboard and on a phone, and one side of A4 on paper."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.checks import assert_accessible, assert_no_sideways_scroll, settle


def test_what_is_seen_leads_to_a_cause_by_keyboard_and_by_link(open_page: Callable[..., Page]) -> None:
    page = open_page("/finder")
    expect(page.get_by_role("heading", name="Nothing chosen yet")).to_be_visible()
    for chip in ("All, evenly high", "As many as on one GPU"):
        page.get_by_role("radio", name=chip).focus()
        page.keyboard.press("Enter")  # the second before the page has answered the first
    first = page.get_by_role("heading", name="The data is not sharded")
    expect(first).to_be_visible()
    expect(page).to_have_url(re.compile("steps=same"))
    page.get_by_text("1. The data is not sharded").click()
    expect(page.get_by_role("heading", name="Confirm it on your cluster")).to_be_visible()
    expect(page.get_by_role("link", name="Watch it run in the lab").first).to_be_visible()
    assert_accessible(page)

    shared = open_page(page.url.removeprefix(re.sub(r"(https?://[^/]+).*", r"\1", page.url)), size="phone", theme="dark")
    jump = shared.get_by_role("link", name="The data is not sharded")
    expect(jump).to_be_visible()
    assert_no_sideways_scroll(shared)
    assert_accessible(shared)
    jump.click()
    expect(shared.get_by_role("heading", name="The data is not sharded")).to_be_in_viewport()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_symptoms_fit_one_side_of_paper(theme: str, open_page: Callable[..., Page]) -> None:
    page = open_page("/symptoms", theme=theme)
    settle(page)
    expect(page.locator(".pg-symptom")).not_to_have_count(0)
    assert_accessible(page)
    page.emulate_media(media="print")
    expect(page.locator('[data-testid="stHeader"]')).to_be_hidden()
    for around in ("html", "body"):  # what the sheet leaves free is paper too
        expect(page.locator(around)).to_have_css("background-color", "rgb(255, 255, 255)")
    sheet = page.pdf(format="A4", prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page[^s]", sheet)) == 1
