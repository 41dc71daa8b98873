"""Joining: CPU of the web server per new visitor, up to the end of the first page.

A visitor is what a browser with an empty cache does, replayed over loopback without the browser: it fetches every file that a real
Chromium was seen to ask for, then opens a Streamlit session. Compared with a minimal Streamlit app in its default settings. The
launcher and its runs are not counted.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
from _common import ROOT, arguments, report
from _sessions import join_together
from playwright.sync_api import sync_playwright

from tests.browser.checks import settle
from tests.browser.chromium import ARGUMENTS, ensure_chromium
from tests.browser.server import AppServer

MINIMAL = "import streamlit as st\nst.title('A minimal page')\n"
CONNECTIONS = 6
"""A browser's limit per origin under HTTP/1.1."""


def files_of_a_visit(url: str) -> list[str]:
    """The paths that Chromium gets for the first page, in its order; streams are left out."""
    paths: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=ensure_chromium(), args=list(ARGUMENTS))
        page = browser.new_page()
        page.on("request", lambda request: paths.append(urlsplit(request.url).path) if request.method == "GET" else None)
        page.goto(url)
        settle(page)
        browser.close()
    return [path for path in dict.fromkeys(paths) if not path.startswith("/live") and path.startswith("/")]


async def fetch_together(url: str, paths: list[str], visitors: int) -> int:
    """Let `visitors` fetch all of `paths` at once, each over its own six connections; bytes on the wire, all together."""

    async def one() -> int:
        limits = httpx.Limits(max_connections=CONNECTIONS)
        async with httpx.AsyncClient(base_url=url, limits=limits, timeout=120, headers={"accept-encoding": "gzip"}) as client:
            answers = await asyncio.gather(*(client.get(path) for path in paths))
            return sum(answer.num_bytes_downloaded for answer in answers)

    return sum(await asyncio.gather(*(one() for _ in range(visitors))))


@contextmanager
def cpu_of(process: psutil.Process) -> Iterator[Callable[[], tuple[float, float]]]:
    """A function that reads (CPU seconds, wall seconds) since the start of the block."""
    before, started = process.cpu_times(), time.perf_counter()

    def read() -> tuple[float, float]:
        now = process.cpu_times()
        return now.user + now.system - before.user - before.system, time.perf_counter() - started

    yield read


def cost(script: Path, ready_path: str, data_dir: Path, visitors: int) -> dict[str, float]:
    """Figures per visitor, of visitors who come all at once."""
    with AppServer(data_dir, script=script, ready_path=ready_path) as server:
        assert server.process is not None
        process = psutil.Process(server.process.pid)
        paths = files_of_a_visit(server.url)  # and with it the imports and caches of the first visitor
        asyncio.run(join_together(server.url, 3))
        time.sleep(0.5)
        with cpu_of(process) as read:
            fetched = asyncio.run(fetch_together(server.url, paths, visitors))
            files_cpu_s, _ = read()
        spent: list[tuple[float, float]] = []
        with cpu_of(process) as read:
            asyncio.run(join_together(server.url, visitors, while_open=lambda: spent.append(read())))
    (session_cpu_s, session_s), per = spent[0], 1000 / visitors
    return {
        "cpu_ms": round(per * (files_cpu_s + session_cpu_s), 1),
        "files_cpu_ms": round(per * files_cpu_s, 1),
        "session_cpu_ms": round(per * session_cpu_s, 1),
        "files": len(paths),
        "mb_on_the_wire": round(fetched / visitors / 1e6, 2),
        "sessions_joined_s": round(session_s, 2),
    }


def main() -> None:
    options = arguments(__doc__, visitors=50)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "floor").mkdir()
        (folder / "floor/minimal.py").write_text(MINIMAL)
        app = cost(ROOT / "app.py", "/healthz", folder / "app", options.visitors)
        minimal = cost(folder / "floor/minimal.py", "/_stcore/health", folder / "minimal", options.visitors)
    figures = {f"{kind}_{key}": value for kind, costs in (("app", app), ("minimal", minimal)) for key, value in costs.items()}
    report("join", {"visitors": options.visitors, **figures}, as_json=options.json)


if __name__ == "__main__":
    main()
