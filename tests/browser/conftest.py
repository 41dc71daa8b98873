"""The browser harness: one real app and one real Chromium per test session, fresh contexts per test.

    def test_something(open_page, app):
        page = open_page("/", theme="dark", size="phone")
        page.get_by_role("button", name="...").click()
        assert_accessible(page)         # from tests.browser.checks

Every page opened with `open_page` fails its test at the end if the console showed an error, a script threw or the server answered
5xx; `allow_faults("text")` excuses what a test provokes on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from tests.browser.checks import SIZES, FaultLog, settle
from tests.browser.chromium import ARGUMENTS, ensure_chromium
from tests.browser.server import AppServer

UNMEASURED = {"SHARDLAB_MEASURE_AT_START": "false"}
"""A fresh server would run every experiment in the background, on both cores, while the tests look at its pages."""


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """The app, shared by the session; `app.url`, `app.data_dir`, `app.log_text()`."""
    with AppServer(tmp_path_factory.mktemp("data"), env=UNMEASURED) as server:
        yield server


@pytest.fixture
def own_app(tmp_path: Path) -> Iterator[Callable[..., AppServer]]:
    """Starts an app for one test: `own_app(env={"SHARDLAB_LIVE_RUNS": "1"})`. For tests that kill, restart or configure it."""
    servers: list[AppServer] = []

    def start(*, env: dict[str, str] | None = None, **options: object) -> AppServer:
        server = AppServer(tmp_path / f"app-{len(servers)}", env={**UNMEASURED, **(env or {})}, **options)  # type: ignore[arg-type]
        servers.append(server)
        return server.start()

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as instance:
        yield instance


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=ensure_chromium(), args=list(ARGUMENTS))
    yield browser
    browser.close()


@pytest.fixture
def fault_log() -> FaultLog:
    return FaultLog()


@pytest.fixture
def allow_faults(fault_log: FaultLog) -> Callable[[str], None]:
    """`allow_faults("net::ERR")`: faults containing this text do not fail the test."""
    return fault_log.allow


@pytest.fixture
def open_page(
    browser: Browser, fault_log: FaultLog, own_app: Callable[..., AppServer], request: pytest.FixtureRequest
) -> Iterator[Callable[..., Page]]:
    """`open_page(path="/", theme="light"|"dark", size="desktop"|"phone"|..., base=None, wait=True, **context options) -> Page`.

    Each call makes a fresh browser context (its own cookies and storage). `base` is another server's url; by default that of `app`.
    `wait=False` returns before Streamlit's first script run has ended. (`own_app` is asked for so that pages close before servers do.)
    """
    contexts = []

    def open_one(
        path: str = "/", *, theme: str = "light", size: str = "desktop", base: str | None = None, wait: bool = True, **options: object
    ) -> Page:
        if base is None:
            base = request.getfixturevalue("app").url
        context = browser.new_context(**{"color_scheme": theme, **SIZES[size], **options})  # type: ignore[arg-type]
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()
        fault_log.watch(page)
        page.goto(base + path)
        if wait:
            settle(page)
        return page

    yield open_one
    for context in contexts:
        context.close()
    fault_log.check()
