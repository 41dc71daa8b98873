"""The lesson in a real browser: the whole path by mouse, by keyboard and on a phone, and what must not be seen too early."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from lessons import load_lessons
from scenarios.catalog import SCENARIOS
from tests.browser.checks import assert_accessible, assert_no_sideways_scroll, settle
from tests.browser.server import AppServer

LESSON = load_lessons().lessons[0]
RIGHT = LESSON.key.text
CRASH = next(option for option in LESSON.options if any(LESSON.cause(c).scenario == "large_batch" for c in option.causes))  # type: ignore[union-attr]
RUN_MS = 40_000
OpenPage = Callable[..., Page]


def lock_in(page: Page, text: str, sure: str = "Fairly") -> None:
    page.get_by_text(text, exact=True).click()
    page.get_by_role("radio", name=sure).click()
    page.get_by_role("button", name="Lock in my answer").click()
    expect(page.get_by_role("button", name="Run my cause")).to_be_visible()


def predict_and_run(page: Page, picture: str) -> None:
    page.locator(".st-key-predict").get_by_role("radio", name=picture).click()
    page.get_by_role("button", name="Run my cause").click()
    expect(page.locator(".sl-status")).to_contain_text("Live", timeout=RUN_MS)


def explained(page: Page) -> None:
    expect(page.get_by_role("tab", name="Why")).to_be_visible(timeout=RUN_MS)
    settle(page)


def top_and_bottom(page: Page, selector: str) -> tuple[float, float]:
    box = page.locator(selector).first.bounding_box()
    assert box is not None, selector
    return box["y"], box["y"] + box["height"]


@pytest.mark.slow
def test_the_whole_path_by_mouse(open_page: OpenPage) -> None:
    page = open_page("/lesson")
    assert_accessible(page)
    lock_in(page, CRASH.text)
    assert_accessible(page)
    predict_and_run(page, "All crash")
    expect(page.locator(".st-key-tell")).not_to_contain_text("speaks against")
    expect(page.get_by_role("button", name="Try again")).to_be_visible(timeout=RUN_MS)
    tell = page.locator(".st-key-tell").inner_text()
    assert "announces itself" in tell
    assert LESSON.why.markdown[:30] not in page.content(), "a wrong first answer is not told the key"
    expect(page.locator("#at-verdict")).to_be_focused()
    expect(page.locator("#at-verdict")).to_contain_text("It drew what you predicted")
    assert_accessible(page)

    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("Second try, for less")).to_be_visible()
    expect(page.get_by_role("radio", name=CRASH.text)).to_have_count(0)
    lock_in(page, RIGHT, "Certain")
    predict_and_run(page, "Only GPU 0 high")
    explained(page)
    expect(page.locator("#at-explained")).to_contain_text("Right, +½ mark")
    assert_accessible(page)

    _, lanes_end = top_and_bottom(page, ".sl-live")
    assert lanes_end <= 800, "all eight lanes without scrolling"
    text_start, _ = top_and_bottom(page, '[role="tabpanel"] .pg-prose')
    assert 800 - text_start >= 300, "at least 300 px of explanation without scrolling"
    for tab in ("Full story", "Each option", "Code", "On your own job"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    assert_accessible(page)
    assert_no_sideways_scroll(page)

    page.get_by_role("button", name="Apply the fix").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("DistributedSampler")
    dialog.get_by_role("button", name="Run the fixed version").click()
    expect(page.locator(".sl-status")).to_contain_text("Live", timeout=RUN_MS)
    assert "cause=" not in page.url


@pytest.mark.slow
def test_by_keyboard_with_a_reload_in_the_middle_of_the_run(open_page: OpenPage) -> None:
    page = open_page("/lesson", theme="dark")
    assert_accessible(page)
    tab_to(page, lambda: page.evaluate("document.activeElement.type") == "radio")
    texts = {option.text for option in LESSON.options}
    # In the order of the page: options are shuffled for each learner.
    names = [text for text in page.locator('[data-testid="stRadio"] label p').all_inner_texts() if text in texts]
    assert len(names) == len(texts)
    page.keyboard.press("Space")
    for _ in range(names.index(RIGHT)):
        page.keyboard.press("ArrowDown")
    tab_to(page, lambda: focused_text(page) == "Guess")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    tab_to(page, lambda: focused_text(page) == "Lock in my answer")
    page.keyboard.press("Enter")
    expect(page.locator("#at-predict")).to_be_focused()
    tab_to(page, lambda: focused_text(page) == "Only GPU 0 high")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Run my cause")).to_be_enabled()
    tab_to(page, lambda: focused_text(page) == "Run my cause")
    page.keyboard.press("Enter")
    expect(page.locator(".sl-status")).to_contain_text("Live", timeout=RUN_MS)
    address = page.url
    assert re.search(r"attempt=[\w-]{10,}", address)
    before = shown_run(page)

    page.reload()
    settle(page)
    assert page.url == address
    expect(page.locator(".sl-status")).to_contain_text("Live", timeout=RUN_MS)
    assert shown_run(page) == before, "the same run goes on"
    assert_accessible(page)
    explained(page)
    expect(page.locator("#at-explained")).to_be_focused()
    assert_accessible(page)


def tab_to(page: Page, there: Callable[[], bool], limit: int = 40) -> None:
    for _ in range(limit):
        page.keyboard.press("Tab")
        if there():
            return
    raise AssertionError("not reached by Tab")


def focused_text(page: Page) -> str:
    return str(page.evaluate("document.activeElement.innerText ?? ''")).replace("\xa0", " ").strip()


def shown_run(page: Page) -> str:
    """The id of the run whose feed the page reads."""
    return str(page.evaluate("performance.getEntriesByType('resource').map(e => e.name).filter(n => n.includes('/live?')).pop()"))


def test_nothing_tells_the_answer_before_it_is_locked_in(open_page: OpenPage, app: AppServer) -> None:
    page = open_page("about:blank", base="", wait=False)
    seen: list[str] = []
    page.on("response", lambda response: seen.append(response.url) or _keep(response, seen))  # type: ignore[func-returns-value]
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: seen.append(_text(data))))
    page.goto(app.url + "/lesson")
    settle(page)
    page.wait_for_timeout(500)
    traffic = "\n".join(seen).lower()
    assert LESSON.options[0].text.lower() in traffic, "the frames were read"
    titles = [scenario.title for scenario in SCENARIOS.values()] + [cause.title for cause in LESSON.causes]
    words = [*SCENARIOS, *titles, *(cause.shows for cause in LESSON.causes), LESSON.exam_box.markdown[:60], LESSON.why.markdown[:60]]
    words += [option.rebuttal.markdown[:60] for option in LESSON.options]
    public = " ".join([LESSON.symptom.markdown, *(option.text for option in LESSON.options)]).lower()
    words = [word for word in words if word.lower() not in public]
    told = [word for word in words if word.lower() in traffic + page.url.lower() + page.title().lower() + page.content().lower()]
    assert told == []
    ids = [cause.id for cause in LESSON.causes]
    assert [name for name in ids if re.search(rf'"{name}"', traffic)] == []


def _keep(response: object, seen: list[str]) -> None:
    url: str = response.url  # type: ignore[attr-defined]
    if "/static/" not in url and not url.endswith((".png", ".woff2")):
        seen.append(response.text())  # type: ignore[attr-defined]


def _text(data: str | bytes) -> str:
    return data if isinstance(data, str) else data.decode("utf-8", "replace")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_has_steps_and_keeps_the_lanes_in_view(theme: str, open_page: OpenPage) -> None:
    page = open_page("/lesson", size="phone", theme=theme)
    assert_no_sideways_scroll(page)
    button = page.get_by_role("button", name="Lock in my answer").bounding_box()
    assert button is not None
    assert button["y"] + button["height"] <= 844, "the button stays in view"
    expect(page.locator(".st-key-predict")).to_be_hidden()
    assert_accessible(page)
    page.get_by_role("button", name="Show the answer now").click()
    explained(page)
    page.locator(".sl-root").get_by_role("button", name="Run it").click()
    expect(page.locator(".sl-status")).to_contain_text("Live", timeout=RUN_MS)
    assert_no_sideways_scroll(page)
    page.locator("#at-evidence").scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    start, end = top_and_bottom(page, ".sl-live")
    assert start >= 0
    assert end <= 844 * 0.45, "the lanes stay in view while the text scrolls"
    assert_accessible(page)


@pytest.mark.parametrize("size", ["narrow", "zoomed"])
def test_nothing_scrolls_sideways(size: str, open_page: OpenPage) -> None:
    page = open_page("/lesson", size=size)
    assert_no_sideways_scroll(page)
    page.get_by_role("button", name="Show the answer now").click()
    explained(page)
    for tab in ("Full story", "Code", "On your own job"):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_timeout(150)
        assert_no_sideways_scroll(page)


def test_back_two_tabs_and_links(open_page: OpenPage) -> None:
    page = open_page("/lesson?cause=k9&gpu=h100-80gb&batch=ten")
    expect(page.get_by_text("A part of this link was left out")).to_contain_text("batch='ten'")
    assert "H100" not in page.content()
    lock_in(page, RIGHT)
    attempt = page.url
    other = page.context.new_page()
    other.goto(attempt)
    settle(other)
    expect(other.get_by_role("button", name="Run my cause")).to_be_visible()
    other.get_by_role("button", name="Show the answer now").click()
    explained(other)
    expect(other.get_by_role("combobox", name="Cause")).to_have_value("Data not sharded")
    page.locator(".st-key-predict").get_by_role("radio", name="All eight high").click()
    explained(page)  # the other tab went on; this one shows how it stands
    page.go_back()
    expect(page.get_by_role("button", name="Lock in my answer")).to_be_visible()
    page.go_forward()
    explained(page)


@pytest.mark.slow
def test_a_restarted_server_knows_where_the_learner_was(
    open_page: OpenPage, own_app: Callable[..., AppServer], allow_faults: Callable
) -> None:
    server = own_app()
    allow_faults("ERR_CONNECTION_REFUSED")
    allow_faults("ERR_INCOMPLETE_CHUNKED_ENCODING")
    allow_faults("WebSocket")
    allow_faults("disconnected from server")
    allow_faults("server endpoint")
    allow_faults("server is not responding")
    page = open_page("/lesson", base=server.url)
    lock_in(page, RIGHT)
    predict_and_run(page, "Only GPU 0 high")
    server.kill()
    server.start()
    page.reload()
    settle(page)
    expect(page.locator(".sl-status")).to_contain_text("Interrupted", timeout=RUN_MS)
    expect(page.locator(".st-key-tell")).to_contain_text("verdict")
    page.locator(".sl-root").get_by_role("button", name="Run again").click()
    expect(page.locator(".sl-status")).to_contain_text("Live", timeout=RUN_MS)


@pytest.mark.slow
def test_run_all_fills_the_evidence_of_a_fresh_machine(open_page: OpenPage, own_app: Callable[..., AppServer]) -> None:
    page = open_page("/lesson", base=own_app().url)
    page.get_by_role("button", name="Show the answer now").click()
    explained(page)
    page.get_by_role("button", name="Run all").click()
    expect(page.get_by_text("Filled from recordings")).to_be_visible(timeout=60_000)
    rows = page.locator(".pg-table tbody tr")
    expect(rows).to_have_count(len(LESSON.causes))
    expect(page.locator(".pg-table .pg-match")).to_contain_text("All data through GPU 0")
    assert "not measured" not in page.locator(".pg-table").inner_text()
