"""A class in a bad hour: the server is killed in the middle of a vote, the store is away, votes overtake one another.

The real app as a process of its own where the process is what fails. No vote may be lost or counted twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from starlette.testclient import TestClient

from lessons import load_lessons
from lessons.classroom import Classroom, ClassState
from lessons.store import STORE_FILE, open_store
from pages.classroom import balloting
from pages.classroom.balloting import Ballots
from pages.classroom.door import PARTICIPANT_COOKIE, Refusal
from tests.browser.server import AppServer
from tests.pages.classroom.conftest import KEY, LESSON
from tests.pages.classroom.streams import Follower
from tests.pages.classroom.test_routes import Browser, act, joined

PHONES = 24


class Phone:
    """What a phone does about its vote: sends it until it is acknowledged, and then no more."""

    def __init__(self, url: str, code: str, *, pause_s: float = 0.05, limit_s: float = 5.0) -> None:
        """`limit_s`: how long it waits for an answer; `pause_s`: then until it sends again."""
        self._client = httpx.Client(base_url=url, timeout=limit_s)
        self._code = code
        self._pause_s = pause_s
        assert self._client.post(f"/c/{code}/join", json={}).status_code == 200

    def vote(self, choice: str, limit_s: float = 60.0) -> int:
        """How often it had to be sent."""
        deadline = time.monotonic() + limit_s
        for tries in range(1, 1_000):
            try:
                answer = self._client.post(f"/c/{self._code}/vote", json={"round": "first", "item_no": 1, "choice": choice})
                if answer.status_code == 200:
                    return tries
                assert answer.status_code == 503, answer.text
            except httpx.TransportError:
                pass
            assert time.monotonic() < deadline
            time.sleep(self._pause_s)
        raise AssertionError

    @property
    def token(self) -> str:
        return str(self._client.cookies[PARTICIPANT_COOKIE])

    def follow(self, role: str = "") -> Follower:
        return Follower(self._client, self._code, role)

    def view(self) -> dict[str, Any]:
        return dict(self._client.get(f"/c/{self._code}/view").json())

    def close(self) -> None:
        self._client.close()


@pytest.mark.slow
def test_a_server_that_is_killed_in_a_vote_comes_back_in_the_same_state_with_every_vote(tmp_path: Path) -> None:
    env = {"SHARDLAB_INSTRUCTOR_KEY": KEY, "SHARDLAB_PREVIEW": "1", "SHARDLAB_LESSONS_DIR": ""}
    with AppServer(tmp_path / "data", env=env) as server, httpx.Client(base_url=server.url, timeout=20) as driver:
        code = a_class(server.data_dir)
        assert driver.post("/instructor/sign-in", data={"key": KEY}).status_code == 303
        phones = [Phone(server.url, code) for _ in range(PHONES)]
        view = driver.post(f"/class/{code}/do", json={"action": "next"}).json()
        options = [option["id"] for option in view["item"]["options"]]
        hand = Follower(phones[0]._client, code)
        assert hand.until("class")["state"] == "vote"
        with ThreadPoolExecutor(PHONES) as pool:
            begun = threading.Event()

            def cast(number: int) -> int:
                if number >= PHONES // 3:
                    begun.wait(60)  # the others are in the middle of it when the server dies
                return phones[number].vote(options[number % len(options)])

            votes = [pool.submit(cast, number) for number in range(PHONES)]
            for vote in votes[: PHONES // 3]:
                vote.result(60)
            begun.set()
            server.kill()
            assert hand.ended()
            server.start()
            tries = [vote.result(60) for vote in votes]
        assert max(tries) > 1, "nobody noticed: the server was not away"
        view = driver.post(f"/class/{code}/do", json={"action": "blank", "on": False}).json()
        assert (view["state"], view["answered"]) == ("vote", PHONES)
        assert {option["id"]: option["n"] for option in view["shares"]["options"]} == {
            option: len(range(at, PHONES, len(options))) for at, option in enumerate(options)
        }
        for number, phone in enumerate(phones):
            assert phone.view()["me"]["votes"]["first"] == options[number % len(options)], "the same participant, the same vote"
            phone.close()
        back = Follower(driver, code, "projector")
        assert back.until("class")["answered"] == PHONES
        back.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_live_run_that_does_not_come_and_one_that_dies_on_the_screens(tmp_path: Path) -> None:
    """On real runs: the launcher hangs, then a run is killed under everybody's eyes."""
    server = AppServer(tmp_path / "data", env={"SHARDLAB_INSTRUCTOR_KEY": KEY})
    with server, httpx.Client(base_url=server.url, timeout=60) as driver:
        code = a_class(server.data_dir)
        assert driver.post("/instructor/sign-in", data={"key": KEY}).status_code == 303
        for _ in range(6):
            view = driver.post(f"/class/{code}/do", json={"action": "next"}).json()
        assert view["state"] == "experiments"
        phone = Phone(server.url, code)
        hand, desk = Follower(phone._client, code), Follower(driver, code, "console")
        while driver.get("/healthz").json()["launcher"] != "ready":
            time.sleep(0.2)
        cause = experiment_of(view["causes"], "large_batch")
        first = driver.post(f"/class/{code}/experiment", json={"cause_id": cause}).json()["run"]
        assert hand.until("shown", 60)["run_id"] == first["run_id"]
        assert hand.until("end", 90)["outcome"] == "out_of_memory"

        while not ready(driver, code, cause):
            time.sleep(0.2)
        launcher = launcher_of(server)
        launcher.suspend()
        try:
            assert driver.post(f"/class/{code}/experiment", json={"cause_id": cause}).json()["run"]["mode"] == "live"
            assert hand.until("shown", 60)["run_id"] != first["run_id"], "starting"
            shown = hand.until("shown", 60)
            assert shown["run_id"] == first["run_id"]
            assert hand.until("end", 60)["outcome"] == "out_of_memory"
            words = until_logged(desk, "could not be shown live")
            assert "did not begin within 2 s" in words
            assert "recording is on the screens" in words
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):  # one that hangs is killed
                launcher.resume()

        driver.post(f"/class/{code}/experiment", json={"cause_id": "fix"})
        hand.until("tick", 90)
        for process in launcher_of(server).children():
            process.kill()
        assert hand.until("end", 60)["outcome"] == "failed"
        assert "run it again" in until_logged(desk, "broke off").lower()
        for follower in (hand, desk):
            follower.close()
        phone.close()


def experiment_of(causes: list[dict[str, Any]], scenario: str) -> str:
    lesson = load_lessons().get(LESSON)
    assert lesson is not None
    found = next(cause.id for cause in lesson.causes if cause.scenario == scenario)
    assert found in [cause["id"] for cause in causes]
    return found


def ready(driver: httpx.Client, code: str, cause: str) -> bool:
    """Whether the console knows of a recording. A run is one once its processes are gone, a moment after its last picture."""
    view = driver.post(f"/class/{code}/do", json={"action": "blank", "on": False}).json()
    return next(bool(each["recording_ready"]) for each in view["causes"] if each["id"] == cause)


def launcher_of(server: AppServer) -> psutil.Process:
    assert server.process is not None
    children = psutil.Process(server.process.pid).children()
    return next(child for child in children if "scenarios.launcher" in " ".join(child.cmdline()))


def until_logged(desk: Follower, words: str) -> str:
    """The line of the console's log that holds `words`."""
    while True:
        for line in desk.until("class", 60)["log"]:
            if words in line["words"]:
                return str(line["words"])


def a_class(data_dir: Path, database_url: str = "") -> str:
    """Made beside the server, as by another one."""
    store = open_store(data_dir, database_url)
    try:
        return Classroom(store).create([LESSON]).code
    finally:
        store.close()


@contextmanager
def store_away(tmp_path: Path) -> Iterator[None]:
    """Somebody else holds SQLite's one lock, as a disk that hangs does."""
    other = sqlite3.connect(tmp_path / STORE_FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def test_while_the_store_is_away_nothing_is_acknowledged_and_afterwards_nothing_is_lost(
    browser: Browser, driver: TestClient, classroom: Classroom, lobby: ClassState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balloting, "ANSWER_LIMIT_S", 0.4)
    phone = joined(browser, lobby.code)
    view = act(driver, lobby.code, "next")
    first, second = (option["id"] for option in view["item"]["options"][:2])  # type: ignore[index]
    body = {"round": "first", "item_no": 1, "choice": first}
    with store_away(tmp_path):
        answer = phone.post(f"/c/{lobby.code}/vote", json=body)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["words"]
        assert phone.get(f"/c/{lobby.code}/view").json()["state"] == "vote", "the class can still be looked at"
        assert classroom.console_view(lobby.code)["answered"] == 0
        stuck = driver.post(f"/class/{lobby.code}/do", json={"action": "next"})
        assert (stuck.status_code, stuck.json()["reason"]) == (503, "store")
    monkeypatch.setattr(balloting, "ANSWER_LIMIT_S", 30.0)  # a busy machine takes its time
    for choice in (first, second):
        assert phone.post(f"/c/{lobby.code}/vote", json={**body, "choice": choice}).status_code == 200
    assert classroom.console_view(lobby.code)["answered"] == 1
    assert phone.get(f"/c/{lobby.code}/view").json()["me"]["votes"]["first"] == second


class Slow:
    """Stands where the classroom would: takes votes when it is let, in threads of the ballots."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.cast: list[str] = []

    def vote(self, code: str, token: str, *, round: str, choice: str, item_no: int) -> str:
        self.let.wait(10)
        self.cast.append(choice)
        return choice

    def audience_me(self, code: str, token: str) -> dict[str, object]:
        return {}


def test_a_vote_that_was_given_up_does_not_come_after_a_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balloting, "ANSWER_LIMIT_S", 0.05)
    slow = Slow()

    async def script() -> list[object]:
        ballots = Ballots(lambda: slow)  # type: ignore[arg-type,return-value]

        async def send(choice: str) -> object:
            try:
                return await ballots.cast("ABC234", "t", round="first", choice=choice, item_no=1)
            except Refusal as refusal:
                return refusal.reason

        given_up = [await send(choice) for choice in ("a", "b", "c")]
        monkeypatch.setattr(balloting, "ANSWER_LIMIT_S", 10.0)
        slow.let.set()
        last = await send("d")
        return [*given_up, last]

    assert asyncio.run(script()) == ["busy", "busy", "busy", ("d", {})]
    assert slow.cast == ["a", "d"], "one that waited is left out once there is a later one"


def test_a_room_that_votes_while_nothing_moves_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balloting, "ANSWER_LIMIT_S", 0.2)
    monkeypatch.setattr(balloting, "WAITING_LIMIT", 40)
    slow = Slow()

    async def script() -> Counter[str]:
        ballots = Ballots(lambda: slow)  # type: ignore[arg-type,return-value]

        async def send(number: int) -> str:
            try:
                await ballots.cast("ABC234", str(number), round="first", choice="a", item_no=1)
            except Refusal as refusal:
                return refusal.reason
            return "recorded"

        told = Counter(await asyncio.gather(*(send(number) for number in range(100))))
        slow.let.set()
        return told

    assert asyncio.run(script()) == {"busy": 100}
    assert len(slow.cast) <= 40
