"""While votes cannot be kept the instructor is told so, once, with what to do, and told again when they are."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from lessons.classroom import Classroom, ClassState
from lessons.store import STORE_FILE, StoreError
from pages.classroom import balloting, door
from pages.classroom.balloting import FLOWING, STUCK
from pages.classroom.door import LateError


@pytest.fixture
def lobby(classroom: Classroom) -> ClassState:
    return classroom.create(["one-busy-gpu"])


def lines(classroom: Classroom, code: str) -> list[tuple[str, str]]:
    return [(line["words"], line["tone"]) for line in classroom.console_view(code)["log"] if line["words"] in (STUCK, FLOWING)]


def told(classroom: Classroom, code: str, expected: list[tuple[str, str]]) -> bool:
    deadline = time.monotonic() + 20
    while lines(classroom, code) != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    return lines(classroom, code) == expected


def test_the_console_says_that_votes_wait_and_when_they_do_not(
    make_app: Callable[..., Starlette], classroom: Classroom, lobby: ClassState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balloting, "TELL_AFTER_S", 60.0)
    code = lobby.code
    with TestClient(make_app()) as phone:
        assert phone.post(f"/c/{code}/join", json={}).status_code == 200
        classroom.act(code, "next")
        lesson = classroom.lesson(code)
        assert lesson is not None
        vote = {"round": "first", "item_no": 1, "choice": lesson.options[0].id}
        assert phone.post(f"/c/{code}/vote", json=vote).status_code == 200
        assert lines(classroom, code) == [], "nothing is said while all is well"
        monkeypatch.setattr(balloting, "TELL_AFTER_S", 0.1)
        monkeypatch.setattr(balloting, "ANSWER_LIMIT_S", 0.4)
        other = sqlite3.connect(tmp_path / STORE_FILE, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            for option in lesson.options[1:3]:
                assert phone.post(f"/c/{code}/vote", json={**vote, "choice": option.id}).status_code == 503
            assert told(classroom, code, [(STUCK, "bad")])
        finally:
            other.execute("ROLLBACK")
            other.close()
        monkeypatch.setattr(balloting, "TELL_AFTER_S", 60.0)
        deadline = time.monotonic() + 20
        while phone.post(f"/c/{code}/vote", json=vote).status_code != 200 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert told(classroom, code, [(STUCK, "bad"), (FLOWING, "good")])


def test_a_vote_that_is_closed_by_then_says_too_that_the_store_is_back(
    make_app: Callable[..., Starlette], classroom: Classroom, lobby: ClassState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balloting, "TELL_AFTER_S", 60.0)
    monkeypatch.setattr(balloting, "ANSWER_LIMIT_S", 0.4)
    with TestClient(make_app()) as phone:
        assert phone.post(f"/c/{lobby.code}/join", json={}).status_code == 200
        classroom.act(lobby.code, "next")
        lesson = classroom.lesson(lobby.code)
        assert lesson is not None
        vote = {"round": "first", "item_no": 1, "choice": lesson.options[0].id}
        classroom.act(lobby.code, "next")
        monkeypatch.setattr(classroom, "vote", away)
        assert phone.post(f"/c/{lobby.code}/vote", json=vote).status_code == 503
        assert told(classroom, lobby.code, [(STUCK, "bad")])
        monkeypatch.undo()
        assert phone.post(f"/c/{lobby.code}/vote", json=vote).status_code == 409
        assert told(classroom, lobby.code, [(STUCK, "bad"), (FLOWING, "good")])


def away(*_: object, **__: object) -> None:
    raise StoreError("away")


def test_what_waits_for_the_store_keeps_nobody_waiting_who_looks(
    make_app: Callable[..., Starlette], lobby: ClassState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it done after all once whoever asked was sent away, unless it had begun."""
    monkeypatch.setattr(door, "CHANGE_LIMIT_S", 0.3)
    at_the_door = make_app().state.classes.door
    begun, free = [], threading.Event()

    def wait(number: int) -> None:
        begun.append(number)
        free.wait(20)

    async def script() -> list[BaseException | None]:
        answers = await asyncio.gather(*(at_the_door.change(wait, number) for number in range(door.THREADS + 4)), return_exceptions=True)
        assert await at_the_door.ask(lambda: "a picture") == "a picture"
        free.set()
        return answers

    answers = asyncio.run(script())
    assert len(begun) == door.THREADS
    assert Counter(type(answer) for answer in answers) == {LateError: door.THREADS, StoreError: 4}
