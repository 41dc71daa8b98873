"""The lab in a real browser: a live run and a sweep that survive a reload, two tabs, Back, the keyboard, and a phone."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.checks import assert_accessible, assert_no_sideways_scroll

WAIT_MS = 60_000
OpenPage = Callable[..., Page]


def parameter(page: Page, name: str) -> str | None:
    found = re.search(rf"[?&]{name}=([^&]*)", page.url)
    return found.group(1) if found else None


def drawn(page: Page) -> Page:
    """The page once its knobs are there: a busy machine loads the scripts of widgets and figures long after the first sentences."""
    page.set_default_timeout(WAIT_MS)
    expect(page.get_by_role("spinbutton", name="Seed")).to_be_visible(timeout=WAIT_MS)
    return page


def status(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.locator(".sl-status")).to_contain_text(text, timeout=WAIT_MS)


def says(page: Page, selector: str, text: str | re.Pattern[str]) -> None:
    expect(page.locator(selector)).to_contain_text(text, timeout=WAIT_MS)


def press(page: Page, name: str, within: str = ".stMain") -> None:
    page.locator(within).get_by_role("button", name=name, exact=True).click()


def tab_to(page: Page, text: str, limit: int = 60) -> None:
    for _ in range(limit):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.innerText ?? ''").strip() == text:
            return
    raise AssertionError(f"{text} not reached by Tab")


@pytest.mark.slow
def test_a_live_run_by_keyboard_shared_by_two_tabs_stopped_run_again_and_reloaded(open_page: OpenPage) -> None:
    page = drawn(open_page("/lab?gpus=2&seed=11"))
    expect(page.get_by_role("heading", name="Which link starves BERT-large?")).to_be_visible()
    assert_accessible(page)
    other = page.context.new_page()
    other.goto(page.url)
    drawn(other)
    tab_to(page, "Run")
    page.keyboard.press("Enter")
    status(page, "Live")
    expect(page.locator("#at-run")).to_be_focused()
    says(page, "#at-run", "2 × A100-80GB")
    press(other, "Run")
    status(other, "Live")
    assert other.url == page.url, "the same knobs are the same run"
    press(page, "Stop", within=".sl-root")
    status(page, "Stopped")
    status(other, "Stopped")
    other.close()
    stopped = parameter(page, "run")

    press(page, "Run again", within=".sl-root")
    status(page, "Live")
    address = page.url
    assert parameter(page, "run") != stopped
    page.reload()
    drawn(page)
    assert page.url == address
    status(page, re.compile("Live|Finished"))
    assert_accessible(page)


@pytest.mark.slow
def test_knobs_go_into_the_address_and_back_takes_them_out(open_page: OpenPage) -> None:
    page = drawn(open_page("/lab?view=memory&gpus=0"))
    says(page, ".pg-link-fault", "gpus='0': must be an integer from 1 to 8")
    says(page, "#at-memory", "Fits: ")
    before = page.locator("#at-memory").inner_text()
    batch = page.get_by_role("spinbutton", name="Batch per GPU")
    batch.fill("4096")
    batch.press("Enter")
    says(page, "#at-memory", "Does not fit")
    assert parameter(page, "batch") == "4096"
    page.go_back()
    says(page, "#at-memory", before)
    expect(batch).to_have_value("256")
    page.get_by_role("combobox", name="Training script").click()
    page.get_by_role("option", name="All data through GPU 0").click()
    expect(page.get_by_role("combobox", name="Shards from GPU 0")).to_be_enabled(timeout=WAIT_MS)
    assert parameter(page, "scenario") == "rank0_loading"
    page.locator(".st-key-lab-below").get_by_text("Sweep", exact=True).click()
    expect(page.get_by_role("combobox", name="Knob to turn")).to_be_visible(timeout=WAIT_MS)
    assert_accessible(page)


@pytest.mark.slow
def test_a_sweep_survives_a_reload_and_goes_on_after_a_stop(open_page: OpenPage) -> None:
    page = drawn(open_page("/lab?view=sweep&over=batch&values=1,2,4,8,16,24,32,48,64,96,128,192&seed=12"))
    state = ".st-key-lab-sweep-state"
    press(page, "Run 12 points")
    expect(page.locator("#at-sweep")).to_be_focused(timeout=WAIT_MS)
    says(page, state, re.compile(r"of 12 points: .* left"))
    page.reload()
    drawn(page)
    press(page, "Stop", within=state)
    says(page, state, re.compile(r"Stopped after \d+ of 12 points"))
    done = int(re.findall(r"after (\d+) of", page.locator(state).inner_text())[0])
    press(page, "Run the rest")
    says(page, state, re.compile(rf"({done + 1}|{done + 2}) of 12 points: "))
    press(page, "Stop", within=state)
    says(page, state, "Stopped after")


@pytest.mark.slow
def test_a_sweep_over_batches_marks_the_memory_edge_and_can_be_taken_away(open_page: OpenPage) -> None:
    page = drawn(open_page("/lab?gpus=2&view=sweep&over=batch&values=16,32,8192&seed=12", theme="dark"))
    press(page, "Run 3 points")
    says(page, ".st-key-lab-sweep-state", "Done.")
    rows = page.locator(".st-key-lab-below .pg-table tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.last).to_contain_text("out of memory")
    says(page, ".st-key-lab-below .js-plotly-plot", "out of memory")
    assert_accessible(page)
    with page.expect_download() as download:
        press(page, "Download as CSV")
    table = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    assert [row["outcome"] for row in table] == ["finished", "finished", "out_of_memory"]
    assert float(table[1]["samples_per_second"]) > float(table[0]["samples_per_second"])


@pytest.mark.slow
def test_a_phone_shows_all_of_it_without_scrolling_sideways(open_page: OpenPage) -> None:
    page = drawn(open_page("/lab?gpus=2&seed=13", size="phone", theme="dark"))
    assert_no_sideways_scroll(page)
    assert_accessible(page)
    press(page, "Run")
    status(page, "Live")
    expect(page.locator("#at-run")).to_be_in_viewport()
    assert_no_sideways_scroll(page)
    press(page, "Stop", within=".sl-root")
    status(page, "Stopped")
    for view in ("Memory", "Predicted", "Compare", "Sweep"):
        page.locator(".st-key-lab-below").get_by_text(view, exact=True).first.click()
        expect(page.locator(f"#at-{view.lower()}")).to_be_visible(timeout=WAIT_MS)
        assert_no_sideways_scroll(page)
