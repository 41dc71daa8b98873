"""What a class's stream tells to whom, on a real socket: views, the run on show, coming back, and who is here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest
from starlette.applications import Starlette

from lessons.classroom import ClassState
from scenarios.record import append_event
from tests.pages.classroom.conftest import KEY
from tests.pages.classroom.streams import Follower, serving
from tests.pages.conftest import PretendedRuns

Client = Callable[..., httpx.Client]
Follow = Callable[..., Follower]


@pytest.fixture
def url(app: Starlette) -> Iterator[str]:
    with serving(app) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(httpx.Client(base_url=url, timeout=20))


@pytest.fixture
def follow() -> Iterator[Follow]:
    with ExitStack() as stack:

        def start(*arguments: object) -> Follower:
            follower = Follower(*arguments)  # type: ignore[arg-type]
            stack.callback(follower.close)
            return follower

        yield start


@pytest.fixture
def driver(client: Client) -> httpx.Client:
    driver = client()
    assert driver.post("/instructor/sign-in", data={"key": KEY}).status_code == 303
    return driver


@pytest.fixture
def phone(client: Client, lobby: ClassState) -> httpx.Client:
    phone = client()
    assert phone.post(f"/c/{lobby.code}/join", json={"nickname": "Ada"}).status_code == 200
    return phone


def act(driver: httpx.Client, code: str, *actions: str, **fields: object) -> dict[str, object]:
    for action in actions:
        answer = driver.post(f"/class/{code}/do", json={"action": action, **fields})
        assert answer.status_code == 200, answer.text
    return dict(answer.json())


def to_experiments(driver: httpx.Client, code: str) -> None:
    act(driver, code, *["next"] * 6)


def test_every_screen_is_told_what_it_may_see(
    driver: httpx.Client, phone: httpx.Client, client: Client, lobby: ClassState, follow: Follow
) -> None:
    code = lobby.code
    wall, desk, hand = follow(client(), code, "projector"), follow(driver, code, "console"), follow(phone, code)
    assert hand.until("class")["me"]["nickname"] == "Ada"
    assert wall.until("class", here=1)["role"] == "projector"
    assert desk.until("class", here=1, reconnecting=0)["role"] == "console"
    act(driver, code, "next")
    option = hand.until("class", state="vote", may_vote=True)["item"]["options"][0]["id"]
    assert "key" in wall.until("class", state="vote")
    assert phone.post(f"/c/{code}/vote", json={"round": "first", "item_no": 1, "choice": option}).status_code == 200
    assert wall.until("class", answered=1)["votes"] is None
    assert desk.until("class", answered=1)["shares"]["n"] == 1
    assert hand.until("class", state="vote")["me"]["votes"]["first"] == option, "other tabs of the phone learn of its vote"
    hand.close()
    assert desk.until("class", here=0)["reconnecting"] == 1


def test_the_run_on_show_comes_in_the_same_stream_and_goes_on_where_it_was_lost(
    driver: httpx.Client, phone: httpx.Client, lobby: ClassState, follow: Follow, runs: PretendedRuns
) -> None:
    code = lobby.code
    to_experiments(driver, code)
    hand = follow(phone, code)
    cause = driver.post(f"/class/{code}/do", json={"action": "blank", "on": False}).json()["causes"][0]["id"]
    assert driver.post(f"/class/{code}/experiment", json={"cause_id": cause}).status_code == 200
    shown = hand.until("shown")
    run = next(iter(runs.runs.values()))
    assert shown["run_id"] == run.run_id
    for t_ms in (200, 400, 600):
        append_event(run.run_dir, "tick", {"t_ms": t_ms})
        assert hand.until("tick")["t_ms"] == t_ms
    last = [event for event in hand.seen if event.name == "tick"][-2]
    assert last.id.split(".")[-1] == "2"
    hand.close()
    for back in (follow(phone, code, "", last.id), follow(phone, code, "", last.id, True)):
        assert back.until("class")["run"]["run_id"] == run.run_id
        assert back.until("tick")["t_ms"] == 600
        assert not [event for event in back.seen if event.name == "shown"], "it is the run that it knows"
    fresh = follow(phone, code)
    fresh.until("shown", run_id=run.run_id)
    assert fresh.until("tick")["t_ms"] == 200
