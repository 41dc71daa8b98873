"""The plain pages and their files on the wire: small, kept for ever under their own address, and allowing no foreign script."""

from __future__ import annotations

import gzip
import re

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from lessons.classroom import ClassState
from pages.classroom.files import KEEP, POLICY, all_texts, up
from pages.routes import CLASS_PAGES
from tests.pages.classroom.test_routes import Browser, act, joined, vote


def test_a_file_is_packed_and_kept_for_ever_under_its_version(browser: Browser, lobby: ClassState) -> None:
    page = browser().get(f"/c/{lobby.code}").text
    addresses = re.findall(r'"\.\./(class-assets/[a-z.]+\?v=[0-9a-f]{16})"', page)
    assert {address.partition("?")[0].rpartition("/")[2] for address in addresses} >= {"phone.js", "phone.css", "lanes.js", "lanes.css"}
    for address in addresses:
        answer = browser().get(f"/{address}", headers={"accept-encoding": "gzip"})
        assert (answer.status_code, answer.headers["content-encoding"], answer.headers["cache-control"]) == (200, "gzip", KEEP)
        assert answer.headers["content-type"].startswith(("text/javascript", "text/css"))
        plain = browser().get(f"/{address}", headers={"accept-encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert plain.text == answer.text


def test_a_file_under_another_version_is_not_kept(browser: Browser) -> None:
    for query in ("", "?v=0123456789abcdef"):
        answer = browser().get(f"/class-assets/plain.css{query}")
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-cache")


def test_the_audience_gets_little(browser: Browser, lobby: ClassState) -> None:
    texts = all_texts()
    first = len(gzip.compress(browser().get(f"/c/{lobby.code}").content)) + sum(
        len(gzip.compress(texts[name].encode(), 9)) for name in ("phone.js", "phone.css")
    )
    assert first < 150_000
    assert first + sum(len(gzip.compress(texts[name].encode(), 9)) for name in ("lanes.js", "lanes.css")) < 300_000


PAGES = ("/c", "/c/{code}", "/c/AAAAAA", "/class/{code}/projector", "/class/{code}/console", "/class/{code}/report")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_allows_only_files_of_ours(driver: TestClient, lobby: ClassState, page: str) -> None:
    answer = driver.get(page.format(code=lobby.code))
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\son[a-z]+=|\sstyle=", answer.text), "nothing in it would be refused by its policy"


def test_nobody_writes_into_these_pages(lobby: ClassState) -> None:
    for path in ("/c", "/c/ABC234", "/class/ABC234/console", "/instructor/sign-in", "/deep/base/c/ABC234"):
        assert CLASS_PAGES.search(path)
    for path in ("/", "/course", "/continue/token", "/classes", "/static/js/c.js"):
        assert not CLASS_PAGES.search(path)


@pytest.mark.parametrize(
    ("path", "root", "way"),
    [("/c", "", "./"), ("/c/ABC234", "", "../"), ("/class/ABC234/report", "", "../../"), ("/at/c/ABC234", "/at", "../")],
)
def test_pages_find_the_way_to_where_the_app_begins(path: str, root: str, way: str) -> None:
    assert up(Request({"type": "http", "path": path, "root_path": root, "headers": []})) == way


def test_an_unknown_code_gets_a_page_that_asks_for_another_one(browser: Browser) -> None:
    answer = browser().get("/c/ABCDEF")
    assert answer.status_code == 404
    assert 'data-door="unknown"' in answer.text
    assert "ABCDEF" not in answer.text


def test_the_qr_code_says_where_phones_go(browser: Browser, lobby: ClassState) -> None:
    answer = browser().get(f"/class/{lobby.code}/qr.svg", headers={"host": "192.0.2.9:8501"})
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert f"http://192.0.2.9:8501/c/{lobby.code}" in answer.text


def test_the_report_prints_what_was_voted_and_names_nobody(browser: Browser, driver: TestClient, lobby: ClassState) -> None:
    phones = [joined(browser, lobby.code, f"Person {number}") for number in range(6)]
    view = act(driver, lobby.code, "next")
    options = [option["id"] for option in view["item"]["options"]]  # type: ignore[index]
    for number, phone in enumerate(phones):
        assert vote(phone, lobby.code, options[number % 2]) == 200
    act(driver, lobby.code, "note", text="Ask <b>why</b> first.")
    page = driver.get(f"/class/{lobby.code}/report").text
    assert page.count("3 (50 %)") == 2
    assert "✓ right" in page
    assert "Ask &lt;b&gt;why&lt;/b&gt; first." in page
    assert "too few votes" in page
    assert "Person" not in page
