"""A class from its lobby to its end over HTTP: what each may do, and what they are answered."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from lessons.classroom import ClassState

Browser = Callable[..., TestClient]


def act(driver: TestClient, code: str, action: str, **fields: object) -> dict[str, object]:
    answer = driver.post(f"/class/{code}/do", json={"action": action, **fields})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def joined(browser: Browser, code: str, nickname: str | None = None, at: str = "10.0.0.1") -> TestClient:
    phone = browser(at)
    answer = phone.post(f"/c/{code}/join", json={} if nickname is None else {"nickname": nickname})
    assert answer.status_code == 200, answer.text
    return phone


def vote(phone: TestClient, code: str, choice: str, which: str = "first", item_no: int = 1) -> int:
    return phone.post(f"/c/{code}/vote", json={"round": which, "item_no": item_no, "choice": choice}).status_code


def test_a_class_goes_from_joining_to_a_vote_that_counts(browser: Browser, driver: TestClient, lobby: ClassState) -> None:
    phone = joined(browser, lobby.code, "Ada")
    assert phone.get(f"/c/{lobby.code}").status_code == 200
    cookie = phone.post(f"/c/{lobby.code}/join", json={}).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=lax"} <= set(cookie.replace("Lax", "lax").split("; "))
    view = act(driver, lobby.code, "next")
    options = [option["id"] for option in view["item"]["options"]]  # type: ignore[index]
    answer = phone.post(f"/c/{lobby.code}/vote", json={"round": "first", "item_no": 1, "choice": options[1]})
    assert answer.json()["recorded"] is True
    assert answer.json()["me"]["votes"]["first"] == options[1]
    assert vote(phone, lobby.code, options[1]) == 200, "an equal vote is acknowledged again"
    assert phone.get(f"/c/{lobby.code}/view").json()["me"] == {**answer.json()["me"], "nickname": "Ada"}
    view = act(driver, lobby.code, "next")
    assert view["votes"]["first"] == {"total": 1, "counts": {options[1]: 1}}  # type: ignore[index]


def test_the_console_of_a_lobby_that_no_phone_can_reach_says_so(
    app: Starlette, driver: TestClient, lobby: ClassState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.state.classes._where, "unreachable", lambda: "No phone comes in.")
    assert act(driver, lobby.code, "blank", on=False)["warning"] == "No phone comes in."
    assert act(driver, lobby.code, "next")["warning"] == "", "everybody is in"
