"""The choice among the silhouettes in a real browser: mouse, keyboard, sizes, and when it tells the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from lessons.model import SILHOUETTES
from pages.components.predict_picker import FOLDER, picker_html
from tests.browser.checks import SIZES, assert_accessible, assert_no_sideways_scroll

PAGE = """<!doctype html><html lang="en"><head><title>Picker</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
:root {{ color-scheme: {theme}; background: {paper}; color: {ink}; font: 17px sans-serif; }}
:root {{ --st-background-color: {paper}; --st-text-color: {ink}; --st-primary-color: {action}; }}
#root {{ max-width: 690px; }} {css}</style></head>
<body><main><h1>Predict</h1><div id="root">{html}</div></main>
<script type="module">{js}
const root = document.getElementById("root");
window.told = [];
const setStateValue = (name, value) => window.told.push([name, value]);
window.show = (data) => mountPicker({{ data: {{ label: "Its run", ...data }}, parentElement: root, setStateValue }});
window.show({{}});
window.ready = true;
</script></body></html>"""
COLOURS = {
    "light": {"paper": "#FBFAF7", "ink": "#1B1F27", "action": "#0F766E"},
    "dark": {"paper": "#12161D", "ink": "#E8EBF0", "action": "#4FD1B8"},
}


@pytest.fixture
def picker(browser: Browser) -> Iterator[Callable[..., Page]]:
    contexts = []
    js = (FOLDER / "picker.js").read_text(encoding="utf-8").replace("export default function", "function mountPicker")
    css = (FOLDER / "picker.css").read_text(encoding="utf-8")

    def show(theme: str = "light", size: str = "desktop") -> Page:
        context = browser.new_context(color_scheme=theme, **SIZES[size])  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_content(PAGE.format(theme=theme, css=css, js=js, html=picker_html(), **COLOURS[theme]))
        page.wait_for_function("window.ready")
        return page

    yield show
    for context in contexts:
        context.close()


def test_a_click_chooses_and_tells_once(picker: Callable[..., Page]) -> None:
    page = picker()
    choices = page.get_by_role("radiogroup", name="Its run").get_by_role("radio")
    expect(choices).to_have_count(len(SILHOUETTES))
    for _ in range(2):
        page.get_by_role("radio", name="All crash").click()
    page.wait_for_timeout(50)
    assert page.evaluate("window.told") == [["picked", "all_crash"]]
    expect(page.get_by_role("radio", name="All crash")).to_have_attribute("aria-checked", "true")


def test_arrow_keys_choose_and_tell_when_they_rest(picker: Callable[..., Page]) -> None:
    page = picker()
    page.keyboard.press("Tab")
    expect(page.get_by_role("radio").first).to_be_focused()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
    expect(page.get_by_role("radio").last).to_be_focused()
    assert page.evaluate("window.told") == []
    page.wait_for_function("window.told.length")
    assert page.evaluate("window.told") == [["picked", "low0"]]


def test_a_rerun_keeps_the_choice_and_a_disabled_one_cannot_be_chosen(picker: Callable[..., Page]) -> None:
    page = picker()
    page.get_by_role("radio", name="All eight low").click()
    page.evaluate("() => { window.show({ disabled: true }); }")
    expect(page.get_by_role("radio", name="All eight low")).to_have_attribute("aria-checked", "true")
    expect(page.get_by_role("radio", name="All crash")).to_be_disabled()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(400)
    assert page.evaluate("window.told") == [["picked", "all_low"]]


def test_a_click_is_told_even_where_the_pictures_go_away_with_it(picker: Callable[..., Page]) -> None:
    page = picker()
    page.evaluate("() => { const goAway = window.show({}); document.querySelector('[data-id=all_low]').click(); goAway(); }")
    page.wait_for_timeout(100)
    assert page.evaluate("window.told") == [["picked", "all_low"]]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("size", "least"), [("desktop", 44), ("phone", 44), ("narrow", 44)])
def test_it_is_accessible_and_fits(picker: Callable[..., Page], theme: str, size: str, least: int) -> None:
    page = picker(theme, size)
    page.get_by_role("radio", name="All eight high").click()
    sides = page.get_by_role("radio").evaluate_all(
        "nodes => nodes.map(node => node.getBoundingClientRect()).flatMap(box => [box.width, box.height])"
    )
    assert min(sides) >= least
    assert_no_sideways_scroll(page)
    assert_accessible(page)
