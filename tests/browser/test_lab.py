"""The lab in a real browser: a live run and a sweep that survive a reload, two tabs, Back, the keyboard, and a phone."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.checks import assert_accessible, assert_no_sideways_scroll, settle

RUN_MS = 40_000
OpenPage = Callable[..., Page]


def parameter(page: Page, name: str) -> str | None:
    found = re.search(rf"[?&]{name}=([^&]*)", page.url)
    return found.group(1) if found else None


def drawn(page: Page) -> Page:
    """The page once its knobs are there: a busy machine loads the scripts of widgets and figures long after the first sentences."""
    expect(page.get_by_role("spinbutton", name="Seed")).to_be_visible(timeout=RUN_MS)
    return page


def status(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.locator(".sl-status")).to_contain_text(text, timeout=RUN_MS)


def tab_to(page: Page, text: str, limit: int = 60) -> None:
    for _ in range(limit):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.innerText ?? ''").strip() == text:
            return
    raise AssertionError(f"{text} not reached by Tab")


@pytest.mark.slow
def test_a_live_run_by_keyboard_reloaded_shared_by_two_tabs_stopped_and_run_again(open_page: OpenPage) -> None:
    page = drawn(open_page("/lab?gpus=2&seed=11"))
    expect(page.get_by_role("heading", name="Which link starves BERT-large?")).to_be_visible()
    assert_accessible(page)
    tab_to(page, "Run")
    page.keyboard.press("Enter")
    status(page, "Live")
    expect(page.locator("#at-run")).to_be_focused()
    expect(page.locator("#at-run")).to_contain_text("2 × A100-80GB")
    address = page.url
    assert parameter(page, "run")
    page.reload()
    settle(page)
    assert page.url == address
    status(page, "Live")
    assert_accessible(page)

    other = page.context.new_page()
    other.goto(address)
    settle(other)
    status(other, "Live")
    other.locator(".sl-root").get_by_role("button", name="Stop").click()
    status(other, "Stopped")
    status(page, "Stopped")
    other.close()
    page.locator(".sl-root").get_by_role("button", name="Run again").click()
    status(page, "Live")
    assert parameter(page, "run") != parameter_of(address, "run")


def parameter_of(address: str, name: str) -> str:
    return re.findall(rf"[?&]{name}=([^&]*)", address)[0]


@pytest.mark.slow
def test_knobs_go_into_the_address_and_back_takes_them_out(open_page: OpenPage) -> None:
    page = drawn(open_page("/lab?view=memory&gpus=0"))
    expect(page.get_by_text("A part of this link was left out")).to_contain_text("gpus='0': must be an integer from 1 to 8")
    expect(page.locator("#at-memory")).to_contain_text("Fits: ")
    before = page.locator("#at-memory").inner_text()
    batch = page.get_by_role("spinbutton", name="Batch per GPU")
    batch.fill("4096")
    batch.press("Enter")
    expect(page.locator("#at-memory")).to_contain_text("Does not fit")
    assert parameter(page, "batch") == "4096"
    page.go_back()
    expect(page.locator("#at-memory")).to_have_text(before)
    expect(batch).to_have_value("256")
    page.get_by_role("combobox", name="Training script").click()
    page.get_by_role("option", name="All data through GPU 0").click()
    expect(page.get_by_role("combobox", name="Shards from GPU 0")).to_be_enabled()
    assert parameter(page, "scenario") == "rank0_loading"
    page.locator(".st-key-lab-below").get_by_text("Sweep", exact=True).click()
    expect(page.get_by_role("combobox", name="Knob to turn")).to_be_visible()
    assert_accessible(page)


@pytest.mark.slow
def test_a_sweep_survives_a_reload_is_stopped_and_finished(open_page: OpenPage) -> None:
    page = drawn(open_page("/lab?gpus=2&view=sweep&over=batch&values=16,32,8192&seed=12", theme="dark"))
    page.get_by_role("button", name="Run 3 points").click()
    expect(page.locator("#at-sweep")).to_be_focused()
    expect(page.locator(".st-key-lab-sweep-state")).to_contain_text(re.compile(r"of 3 points: Batch per GPU .* left"))
    page.reload()
    settle(page)
    stop = page.locator(".st-key-lab-sweep-state").get_by_role("button", name="Stop")
    stop.click()
    expect(page.locator(".st-key-lab-sweep-state")).to_contain_text(re.compile(r"Stopped after \d of 3 points"))
    page.get_by_role("button", name="Run the rest").click()
    expect(page.locator(".st-key-lab-sweep-state")).to_contain_text("Done.", timeout=RUN_MS)
    rows = page.locator(".st-key-lab-below .pg-table tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.last).to_contain_text("out of memory")
    expect(page.locator(".st-key-lab-below .js-plotly-plot")).to_contain_text("out of memory")
    assert_accessible(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    table = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    assert [row["outcome"] for row in table] == ["finished", "finished", "out_of_memory"]
    assert float(table[1]["samples_per_second"]) > float(table[0]["samples_per_second"])


@pytest.mark.slow
def test_a_phone_shows_all_of_it_without_scrolling_sideways(open_page: OpenPage) -> None:
    page = drawn(open_page("/lab?gpus=2&seed=13", size="phone", theme="dark"))
    assert_no_sideways_scroll(page)
    assert_accessible(page)
    page.get_by_role("button", name="Run", exact=True).click()
    status(page, "Live")
    expect(page.locator("#at-run")).to_be_in_viewport()
    assert_no_sideways_scroll(page)
    page.locator(".sl-root").get_by_role("button", name="Stop").click()
    status(page, "Stopped")
    for view in ("Memory", "Predicted", "Compare", "Sweep"):
        page.locator(".st-key-lab-below").get_by_text(view, exact=True).first.click()
        expect(page.locator(f"#at-{view.lower()}")).to_be_visible()
        assert_no_sideways_scroll(page)
    assert_accessible(page)
