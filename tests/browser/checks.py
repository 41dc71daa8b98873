"""What browser tests assert about any page: no console fault, no serious accessibility violation, nothing scrolling sideways.

Owns the checks and the viewport sizes of UX.md. Must not start a server or a browser.
"""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Page, Response

SIZES: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 800}},
    "wide": {"viewport": {"width": 1920, "height": 1080}},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2},
    "narrow": {"viewport": {"width": 320, "height": 700}},
    # 200 % zoom of a 1280x800 window: half the CSS pixels, twice the density.
    "zoomed": {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2},
}


class FaultLog:
    """Console errors, uncaught exceptions and 5xx answers of the watched pages."""

    def __init__(self) -> None:
        self._faults: list[str] = []
        self._allowed: list[str] = []

    def watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self._faults.append(f"uncaught: {error}"))
        page.on("response", self._response)

    def allow(self, text: str) -> None:
        self._allowed.append(text)

    @property
    def faults(self) -> list[str]:
        """What was seen so far and not allowed."""
        return [fault for fault in self._faults if not any(text in fault for text in self._allowed)]

    def check(self) -> None:
        assert not self.faults, "the browser reported:\n" + "\n".join(self.faults)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._faults.append(f"console: {message.text} ({message.location.get('url', '')})")

    def _response(self, response: Response) -> None:
        if response.status >= 500:
            self._faults.append(f"answer {response.status}: {response.url}")


def settle(page: Page, limit_ms: float = 30_000) -> None:
    """Wait until Streamlit is connected and no script runs."""
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"][data-test-connection-state="CONNECTED"]').wait_for(
        timeout=limit_ms
    )


def assert_accessible(page: Page, context: str | list[str] | dict[str, Any] | None = None) -> None:
    """No violation that axe-core ranks serious or critical. `context` limits the check to a selector."""
    report = Axe().run(page, context=context, options={"resultTypes": ["violations"]})
    serious = [found for found in report.response["violations"] if found["impact"] in ("serious", "critical")]
    assert not serious, "axe found:\n" + "\n".join(_described(found) for found in serious)


def assert_no_sideways_scroll(page: Page) -> None:
    """The document is not wider than the window, and no scroll container of the page is wider than itself."""
    wide = page.evaluate(
        """() => ['html', 'body', '[data-testid="stMain"]', '[data-testid="stAppViewContainer"]']
            .map(selector => [selector, document.querySelector(selector)])
            .filter(([, node]) => node && node.scrollWidth > node.clientWidth + 1)
            .map(([selector, node]) => `${selector}: ${node.scrollWidth} > ${node.clientWidth}`)"""
    )
    assert not wide, f"scrolls sideways: {wide}"


def _described(found: dict[str, Any]) -> str:
    nodes = "\n".join(f"    {' '.join(map(str, node['target']))}: {node['html'][:160]}" for node in found["nodes"][:5])
    return f"{found['impact']} {found['id']}: {found['help']}\n{nodes}"
