"""The browser checks can fail: each finds what is planted in a page made for it, and passes a sound one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser

from tests.browser.checks import FaultLog, assert_accessible, assert_no_sideways_scroll

SOUND = "<html lang=en><title>Sound</title><main><h1>A page</h1><button>Go</button></main></html>"


@pytest.mark.parametrize(
    ("check", "body", "found"),
    [
        (assert_accessible, "<button></button>", "button-name"),
        (assert_accessible, "<p style='color:#bbb;background:#fff'>Too pale to read</p>", "color-contrast"),
        (assert_no_sideways_scroll, "<div style='width:3000px'>Too wide</div>", "scrolls sideways"),
    ],
)
def test_a_planted_fault_is_found(check: Callable, body: str, found: str, browser: Browser) -> None:
    page = browser.new_page()
    page.set_content(SOUND)
    check(page)
    page.set_content(SOUND.replace("</main>", body + "</main>"))
    with pytest.raises(AssertionError, match=found):
        check(page)
    page.close()


@pytest.mark.parametrize("script", ["console.error('planted')", "setTimeout(() => { throw new Error('planted') })"])
def test_a_console_fault_is_found_and_can_be_allowed(script: str, browser: Browser) -> None:
    log = FaultLog()
    page = browser.new_page()
    log.watch(page)
    page.set_content(SOUND)
    log.check()
    page.evaluate(script)
    page.wait_for_timeout(200)
    with pytest.raises(AssertionError, match="planted"):
        log.check()
    log.allow("planted")
    log.check()
    page.close()
