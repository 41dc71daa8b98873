"""The audience's page on a slow phone network: bytes to the first vote and with the live picture, and seconds until one can vote.

A real Chromium with an empty cache, its network held to 1.6 Mbit/s and 150 ms (as DevTools does it), against a real server and class. Join
is pressed as soon as it is there: what is measured is the page, not the person. Compared with the same question on the Streamlit lesson
page, in the same run. kB are 1,000 bytes after compression, with headers. Of `--tries` the median counts.
"""

from __future__ import annotations

import statistics
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _common import arguments, report
from playwright.sync_api import Browser, Page, sync_playwright

from lessons.classroom import Classroom
from lessons.store import open_store
from tests.browser.checks import SIZES
from tests.browser.chromium import ARGUMENTS, ensure_chromium
from tests.browser.server import AppServer
from tests.browser.wire import Wire

KEY = "a-key-for-the-benchmark"
LESSON = "one-busy-gpu"
LIMIT_MS = 120_000
READY = ".choice:not([aria-disabled=true]), [data-testid=stRadio] input:not(:disabled)"
PRESS_JOIN_AND_NOTE = f"""
    new MutationObserver(() => {{
        const join = [...document.querySelectorAll("button")].find(each => each.textContent === "Join");
        if (join) join.click();
        if (document.querySelector("{READY}")) window.votableMs ??= performance.now();
    }}).observe(document, {{ subtree: true, childList: true, attributes: true }});
"""


class Instructor:
    """Drives a class over HTTP, signed in by the key."""

    def __init__(self, url: str, code: str) -> None:
        self._url, self._code = url, code
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        self._post("/instructor/sign-in", urllib.parse.urlencode({"key": KEY}).encode(), "application/x-www-form-urlencoded")

    def do(self, path: str, body: str) -> None:
        self._post(f"/class/{self._code}/{path}", body.encode(), "application/json")

    def _post(self, path: str, body: bytes, kind: str) -> None:
        headers = {"Content-Type": kind, "Origin": self._url}
        with self._opener.open(urllib.request.Request(self._url + path, body, headers), timeout=60) as answer:
            answer.read()


@contextmanager
def slow_phone(browser: Browser) -> Iterator[tuple[Page, Wire]]:
    context = browser.new_context(**SIZES["phone"])
    context.set_default_timeout(LIMIT_MS)
    context.add_init_script(PRESS_JOIN_AND_NOTE)
    page = context.new_page()
    yield page, Wire(page).slowed()
    context.close()


def votable_s(page: Page, address: str) -> float:
    """Open it and wait until an answer can be chosen; seconds since the page was asked for."""
    page.goto(address, wait_until="commit")
    page.locator(READY).first.wait_for(state="attached")
    return float(page.evaluate("window.votableMs")) / 1000


def on_the_phone_page(browser: Browser, url: str, code: str) -> dict[str, float]:
    instructor = Instructor(url, code)
    instructor.do("do", '{"action": "next"}')
    with slow_phone(browser) as (page, wire):
        ready_s = votable_s(page, f"{url}/c/{code}")
        page.get_by_role("radio").first.click()
        page.locator('#dock [data-tone="sent"]').wait_for()
        voted = wire.received
        instructor.do("do", '{"action": "go_to", "state": "experiments"}')
        instructor.do("experiment", f'{{"cause_id": "{first_cause()}", "mode": "live"}}')
        # On a busy machine the server may show its recording instead, which is as many bytes.
        page.locator('#stage:is([data-state="running"], [data-state="replay"])').wait_for()
        page.locator('#stage[data-state="finished"]').wait_for()
        whole = wire.received
    return {"votable_s": ready_s, "first_vote_kb": voted / 1000, "with_lanes_kb": whole / 1000}


def on_the_lesson_page(browser: Browser, url: str) -> dict[str, float]:
    with slow_phone(browser) as (page, wire):
        ready_s = votable_s(page, f"{url}/lesson?lesson={LESSON}")
        return {"lesson_page_votable_s": ready_s, "lesson_page_kb": wire.received / 1000}


def first_cause() -> str:
    from lessons import load_lessons

    lesson = load_lessons().get(LESSON)
    assert lesson is not None
    return lesson.key.causes[0]


def medians(found: list[dict[str, float]]) -> dict[str, Any]:
    return {name: round(statistics.median(each[name] for each in found), 2) for name in found[0]}


def main() -> None:
    options = arguments(__doc__, tries=3)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        with AppServer(folder, env={"SHARDLAB_INSTRUCTOR_KEY": KEY}) as server:
            store = open_store(folder)
            classroom = Classroom(store)
            browser = playwright.chromium.launch(executable_path=ensure_chromium(), args=list(ARGUMENTS))
            codes = [classroom.create([LESSON]).code for _ in range(options.tries + 1)]
            visits = [on_the_phone_page(browser, server.url, code) for code in codes]
            phone = medians(visits[1:])  # the first is the server's own first time too
            lesson = medians([on_the_lesson_page(browser, server.url) for _ in range(options.tries)])
            browser.close()
            store.close()
    ratios = {
        "times_lighter": round(lesson["lesson_page_kb"] / phone["first_vote_kb"], 1),
        "times_sooner": round(lesson["lesson_page_votable_s"] / phone["votable_s"], 1),
    }
    report("phone_page", {"mbit_s": 1.6, "latency_ms": 150, **phone, **lesson, **ratios}, as_json=options.json)


if __name__ == "__main__":
    main()
