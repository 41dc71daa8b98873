"""The first page: it comes up without torch in the web server, without a console fault, in every theme and size."""

from __future__ import annotations

import http.client
import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.checks import SIZES, assert_accessible, assert_no_sideways_scroll
from tests.browser.server import AppServer


def test_healthz_answers(app: AppServer) -> None:
    with urllib.request.urlopen(app.url + "/healthz", timeout=5) as response:
        assert response.headers["content-type"].startswith("application/json")
        assert json.load(response)["status"] == "ok"


def test_answers_on_an_open_connection_wait_for_no_timer(app: AppServer) -> None:
    """Head and body are two packets: unless the server says otherwise to the kernel, the second waits 40 ms for the browser's receipt."""
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=10)
    took_ms = []
    for _ in range(12):
        started_s = time.perf_counter()
        connection.request("GET", "/healthz")
        assert connection.getresponse().read()
        took_ms.append(1000 * (time.perf_counter() - started_s))
    connection.close()
    assert min(took_ms[2:]) < 30


def test_the_web_server_serves_a_page_without_torch(app: AppServer, open_page: Callable[..., Page]) -> None:
    expect(open_page("/").locator("h1, h2").first).to_be_visible()
    assert app.process is not None
    mapped = Path(f"/proc/{app.process.pid}/maps").read_text()
    assert "python" in mapped
    assert "libtorch" not in mapped


@pytest.mark.parametrize(("theme", "size"), [("light", "desktop"), *(("dark", size) for size in SIZES)])
def test_the_first_page_is_sound(theme: str, size: str, open_page: Callable[..., Page]) -> None:
    page = open_page("/", theme=theme, size=size)
    expect(page.locator("h1, h2").first).to_be_visible()
    assert_no_sideways_scroll(page)
    assert_accessible(page)
