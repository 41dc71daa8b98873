"""Joining: server CPU of opening a lesson, and how long it takes until everyone of a full room has the page who came at one moment.

A visit is what a browser does, replayed over loopback without the browser: the page with its cookies, every file that a real Chromium was
seen to ask for (`cold`, an empty cache; `warm`, the cache of a second visit), then a Streamlit session up to the end of its first page.
Visitors open the first page of the app, or the lessons of the course in turn. Compared, in the same run, with a minimal Streamlit app in
its default settings. The launcher and its runs are not counted; the clients run on the same cores. Of `--tries` the quietest counts.
"""

from __future__ import annotations

import asyncio
import resource
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from _common import arguments, report
from _visits import Address, Visitor, visitors
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from lessons import load_lessons
from tests.browser.checks import settle
from tests.browser.chromium import ARGUMENTS, ensure_chromium
from tests.browser.server import AppServer

MINIMAL = "import streamlit as st\nst.title('A minimal page')\n"
OPEN_FILES = 16_384
"""Both ends of seven connections for each of several hundred visitors."""


@dataclass(frozen=True, kw_only=True)
class Files:
    """What Chromium asks for beside the page itself."""

    cold: tuple[str, ...]
    warm: tuple[str, ...]

    @classmethod
    def of(cls, browser: Browser, url: str) -> Files:
        context = browser.new_context()
        found = cls(cold=_asked_for(context, url), warm=_asked_for(context, url))
        context.close()
        return found


def _asked_for(context: BrowserContext, url: str) -> tuple[str, ...]:
    """Paths that go over the network when `url` is opened, in their order; streams are left out."""
    page = context.new_page()
    page.goto(url)
    settle(page)
    # What comes out of the browser's cache has no size on the wire.
    asked = page.evaluate("performance.getEntriesByType('resource').filter(each => each.transferSize > 0).map(each => each.name)")
    page.close()
    return tuple(path for path in dict.fromkeys(urlsplit(each).path for each in asked) if not path.endswith("/live"))


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def full_room(url: str, process: psutil.Process, addresses: Sequence[Address], files: Sequence[str]) -> dict[str, float]:
    """Everyone at once."""
    done_s: list[float] = []
    async with visitors(url, addresses) as made:
        before, started = cpu_s(process), time.perf_counter()

        async def visit(visitor: Visitor) -> None:
            await visitor.open(files)
            done_s.append(time.perf_counter() - started)

        await asyncio.gather(*(visit(visitor) for visitor in made))
        spent = cpu_s(process) - before
        received = sum(visitor.received for visitor in made)
    return {
        "all_s": round(max(done_s), 2), "median_s": round(sorted(done_s)[len(done_s) // 2], 2),
        "cpu_ms": round(1000 * spent / len(made), 1), "mb": round(received / len(made) / 1e6, 2),
    }


async def one_by_one(url: str, process: psutil.Process, addresses: Sequence[Address], files: Sequence[str]) -> float:
    """CPU milliseconds of a visit when nobody else is there."""
    spent = 0.0
    for address in addresses:
        async with visitors(url, [address]) as made:
            before = cpu_s(process)
            await made[0].open(files)
            spent += cpu_s(process) - before
    return round(1000 * spent / len(addresses), 1)


@dataclass(frozen=True, kw_only=True)
class Room:
    """One server and what visitors open there."""

    name: str
    addresses: tuple[Address, ...]
    files: Files

    def measure(self, server: AppServer, count: int, tries: int) -> dict[str, float]:
        assert server.process is not None
        process = psutil.Process(server.process.pid)
        addresses = [self.addresses[number % len(self.addresses)] for number in range(max(count, len(self.addresses)))]
        asyncio.run(one_by_one(server.url, process, self.addresses, self.files.cold))  # imports and caches of the first visitors
        alone = addresses[: max(20, len(self.addresses))]
        found = {
            f"{kind}_cpu_ms": min(asyncio.run(one_by_one(server.url, process, alone, files)) for _ in range(tries))
            for kind, files in (("cold", self.files.cold), ("warm", self.files.warm))
        }
        together = []
        for _ in range(tries):
            together.append(asyncio.run(full_room(server.url, process, addresses[:count], self.files.cold)))
            time.sleep(1.0)  # closed sessions are put away
        best = min(together, key=lambda each: each["all_s"])
        found |= {"files": len(self.files.cold), "mb": best["mb"], "at_once_cpu_ms": best["cpu_ms"]}
        found |= {"at_once_all_s": best["all_s"], "at_once_median_s": best["median_s"]}
        return {f"{self.name}_{key}": value for key, value in found.items()}


def measured(server: AppServer, opened: Mapping[str, tuple[Address, ...]], count: int, tries: int) -> dict[str, float]:
    """The figures of each kind of visit, the browser that looks for files long gone."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=ensure_chromium(), args=list(ARGUMENTS))
        files = {name: Files.of(browser, server.url + addresses[0].path) for name, addresses in opened.items()}
        browser.close()
    rooms = [Room(name=name, addresses=addresses, files=files[name]) for name, addresses in opened.items()]
    return {key: value for room in rooms for key, value in room.measure(server, count, tries).items()}


def main() -> None:
    options = arguments(__doc__, visitors=300, tries=3)
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, max(OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    lessons = tuple(Address(page="lesson", query=f"lesson={lesson.id}") for lesson in load_lessons().lessons)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "floor").mkdir()
        (folder / "floor/minimal.py").write_text(MINIMAL)
        with AppServer(folder / "app") as server:
            figures = measured(server, {"lesson": lessons, "home": (Address(),)}, options.visitors, options.tries)
        with AppServer(folder / "minimal", script=folder / "floor/minimal.py", ready_path="/_stcore/health") as server:
            figures |= measured(server, {"minimal": (Address(),)}, options.visitors, options.tries)
    report("join", {"visitors": options.visitors, **figures}, as_json=options.json)


if __name__ == "__main__":
    main()
