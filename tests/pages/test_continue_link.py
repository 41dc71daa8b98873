"""The learner's cookie and the link to continue elsewhere, over HTTP: who becomes whom, what is refused, and what leaks nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from lessons.attempts import AttemptStore
from lessons.learners import Learners, new_token, well_formed
from lessons.store import Store, StoreError, open_store
from pages import continue_link
from pages.continue_link import continue_routes
from pages.front_door import FrontDoor
from pages.learner_cookie import LEARNER_COOKIE

PAGE = {"accept": "text/html"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def clock() -> list[float]:
    """The seconds that the limit on tries goes by."""
    return [0.0]


@pytest.fixture
def browser(store: Store, clock: list[float]) -> TestClient:
    async def index(_: object) -> HTMLResponse:
        return HTMLResponse("<html><head><title>Streamlit</title></head><body></body></html>")

    door = Middleware(FrontDoor, page_names=("lesson",), title="Shardlab", style="p{}", is_dead=Learners(store).is_dead)
    app = Starlette(routes=[*continue_routes(lambda: Learners(store), now=lambda: clock[0]), Route("/", index)], middleware=[door])
    return TestClient(app, follow_redirects=False)


def known(store: Store) -> str:
    """The token of a learner who has answered something."""
    token = new_token()
    AttemptStore(store).start("one-busy-gpu", learner=token)
    return token


def test_a_browser_gets_a_token_that_lasts(browser: TestClient) -> None:
    first = browser.get("/", headers=PAGE)
    token = browser.cookies[LEARNER_COOKIE]
    assert well_formed(token)
    cookie = next(value for value in first.headers.get_list("set-cookie") if value.startswith(LEARNER_COOKIE))
    assert {"HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=34560000"} <= set(cookie.split("; "))
    browser.get("/", headers=PAGE)
    assert browser.cookies[LEARNER_COOKIE] == token


def test_the_link_makes_another_browser_the_same_learner(browser: TestClient, store: Store) -> None:
    browser.get("/", headers=PAGE)
    token = known(store)
    answer = browser.get(f"/continue/{token}", headers={**PAGE, "x-forwarded-proto": "https"})
    assert (answer.status_code, answer.headers["location"]) == (303, "../")
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["set-cookie"].startswith(f"{LEARNER_COOKIE}={token}; ")
    assert answer.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize("token", ["x", "a" * 32, "%3Cscript%3E", "..%2Fhealthz"])
def test_a_lost_link_is_a_page_that_repeats_nothing(browser: TestClient, token: str) -> None:
    answer = browser.get(f"/continue/{token}", headers=PAGE)
    assert answer.status_code == 404
    if "%2F" not in token:
        assert "This link leads nowhere" in answer.text
        assert "<script>alert" not in answer.text
        assert "a" * 32 not in answer.text


def test_progress_of_ones_own_is_not_given_up_without_asking(browser: TestClient, store: Store) -> None:
    own, other = known(store), known(store)
    browser.cookies.set(LEARNER_COOKIE, own)
    asked = browser.get(f"/continue/{other}", headers=PAGE)
    assert asked.status_code == 200
    assert "progress of its own" in asked.text
    assert f"{LEARNER_COOKIE}={other}" not in str(asked.headers)
    assert other not in asked.text
    foreign = browser.post(f"/continue/{other}", headers={**PAGE, "sec-fetch-site": "cross-site"})
    assert foreign.status_code == 403
    yes = browser.post(f"/continue/{other}", headers={**PAGE, "sec-fetch-site": "same-origin"})
    assert yes.status_code == 303
    assert yes.headers["set-cookie"].startswith(f"{LEARNER_COOKIE}={other}; ")


def test_pages_that_stand_apart_are_left_as_they_are(store: Store) -> None:
    async def page(_: object) -> HTMLResponse:
        return HTMLResponse("<html><head><title>Streamlit</title></head><body></body></html>")

    door = Middleware(FrontDoor, page_names=("lesson",), title="Shardlab", style="p{}", apart=re.compile("^/c/"))
    app = Starlette(routes=[Route("/c/{code}", page), Route("/lesson", page)], middleware=[door])
    apart, other = (TestClient(app).get(path, headers=PAGE) for path in ("/c/ABC234", "/lesson"))
    assert ("<style>" in apart.text, "<script>" in apart.text, "set-cookie" in apart.headers) == (False, False, False)
    assert "<style>" in other.text


def test_ones_own_link_asks_nothing(browser: TestClient, store: Store) -> None:
    own = known(store)
    browser.cookies.set(LEARNER_COOKIE, own)
    assert browser.get(f"/continue/{own}").status_code == 303


def test_guessing_is_slowed_down(browser: TestClient, store: Store, clock: list[float]) -> None:
    token = known(store)
    for _ in range(continue_link.TRIES):
        assert browser.get(f"/continue/{new_token()}").status_code == 404
    assert browser.get(f"/continue/{token}").status_code == 429
    clock[0] = continue_link.WITHIN_S - 0.1
    assert browser.get(f"/continue/{token}").status_code == 429
    clock[0] = continue_link.WITHIN_S
    assert browser.get(f"/continue/{token}").status_code == 303


def test_a_deleted_learner_gets_another_token_and_the_old_link_leads_nowhere(browser: TestClient, store: Store) -> None:
    token = known(store)
    browser.cookies.set(LEARNER_COOKIE, token)
    assert Learners(store).delete(token)
    answer = browser.get("/", headers=PAGE)
    cookie = next(value for value in answer.headers.get_list("set-cookie") if value.startswith(LEARNER_COOKIE))
    assert token not in cookie
    assert browser.get(f"/continue/{token}").status_code == 404


def test_a_store_that_is_away_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> Learners:
        raise StoreError("The database cannot be reached just now.")

    answer = TestClient(Starlette(routes=list(continue_routes(away)))).get(f"/continue/{new_token()}")
    assert (answer.status_code, "cannot be reached just now" in answer.text) == (503, True)
