"""The page "How these GPUs work" in a browser: sound in both themes, and nothing scrolls sideways on a phone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.checks import assert_accessible, assert_no_sideways_scroll


@pytest.mark.parametrize(("theme", "size"), [("light", "desktop"), ("dark", "phone")])
def test_the_page_is_sound_with_every_table_open(theme: str, size: str, open_page: Callable[..., Page]) -> None:
    page = open_page("/how", theme=theme, size=size)
    expect(page.locator("#at-how")).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(3)
    expect(page.get_by_text("The training code runs for real; times, memory and power are modelled.").first).to_be_visible()
    assert_accessible(page)
    for summary in page.locator("[data-testid=stExpander] summary").all():
        summary.click()
    expect(page.get_by_role("region", name="Held-out rows")).to_be_visible()
    expect(page.get_by_role("region", name="Links and networks")).to_be_visible()
    assert_no_sideways_scroll(page)
    assert_accessible(page, "[aria-label='Links and networks']")
    wide = page.evaluate(
        """() => [...document.querySelectorAll('.st-key-how .js-plotly-plot, .st-key-how .pg-table')]
            .filter(node => node.getBoundingClientRect().right > window.innerWidth + 1).map(node => node.className)"""
    )
    assert wide == []


def test_a_link_leads_to_it_from_the_top(open_page: Callable[..., Page]) -> None:
    page = open_page("/")
    page.get_by_role("link", name="How these GPUs work").click()
    expect(page.locator("#at-how")).to_be_visible()
    assert page.url.endswith("/how")
