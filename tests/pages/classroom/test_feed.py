"""What a class's stream tells to whom, on a real socket: views, the run on show, coming back, and who is here."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from lessons.classroom import Classroom, ClassState
from lessons.store import Store
from pages.classroom import feed, screens
from pages.classroom.room import Room
from scenarios.config import RunConfig
from scenarios.record import append_event
from tests.pages.classroom.conftest import KEY, LESSON
from tests.pages.classroom.streams import Follower, serving
from tests.pages.classroom.test_attacks import secrets_of
from tests.pages.conftest import PretendedRuns

json_dumps = json.dumps
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


def test_nothing_is_in_a_stream_before_its_time(
    driver: httpx.Client, phone: httpx.Client, client: Client, lobby: ClassState, classroom: Classroom, follow: Follow
) -> None:
    code = lobby.code
    act(driver, code, "next")
    lesson = classroom.lesson(code)
    assert lesson is not None
    other = client()
    assert other.post(f"/c/{code}/join", json={"nickname": "Bob-the-second"}).status_code == 200
    assert other.post(f"/c/{code}/vote", json={"round": "first", "item_no": 1, "choice": lesson.options[0].id}).status_code == 200
    streams = [follow(phone, code), follow(client(), code, "projector")]
    for state in ("vote", "votes", "discuss", "revote", "predict", "experiments"):
        for stream in streams:
            view = stream.until("class", state=state)
            text = json.dumps(view)
            assert not [secret for secret in secrets_of(lesson, state) if secret in text], (state, view["role"])
            assert "Bob-the-second" not in text
            assert (view["votes"] is None) == (state in ("vote", "revote"))
            assert (view["predictions"] is None) == (state != "experiments")
            assert (view["key"], view["explanation"], view["run"]) == (None, None, None)
        act(driver, code, "next")
    assert streams[0].until("class", state="key")["key"]["option_id"] == lesson.key.id


def test_a_frozen_projector_goes_on_with_what_it_showed(
    driver: httpx.Client, client: Client, phone: httpx.Client, lobby: ClassState, follow: Follow
) -> None:
    code = lobby.code
    act(driver, code, "next")
    act(driver, code, "freeze", on=True)
    act(driver, code, "next")
    wall, hand = follow(client(), code, "projector"), follow(phone, code)
    view = wall.until("class")
    assert (view["state"], view["frozen"]) == ("vote", True)
    assert hand.until("class")["state"] == "votes"
    act(driver, code, "freeze", on=False)
    assert wall.until("class", frozen=False)["state"] == "votes"
    act(driver, code, "blank", on=True)
    assert wall.until("class", blank=True)


def test_a_participant_who_is_removed_is_shown_out(
    driver: httpx.Client, phone: httpx.Client, lobby: ClassState, follow: Follow
) -> None:
    code = lobby.code
    hand, desk = follow(phone, code), follow(driver, code, "console")
    hand.until("class")
    person = desk.until("class", here=1)["participants"][0]["id"]
    act(driver, code, "remove", participant=person)
    assert hand.ended()
    again = follow(phone, code)
    assert again.response.status_code == 403
    view = desk.until("class", here=0)
    assert view["reconnecting"] == 0, "they are not expected back"


def test_pausing_and_showing_again_reach_every_screen(
    driver: httpx.Client, phone: httpx.Client, client: Client, lobby: ClassState, follow: Follow, runs: PretendedRuns
) -> None:
    code = lobby.code
    to_experiments(driver, code)
    streams = [follow(phone, code), follow(client(), code, "projector"), follow(driver, code, "console")]
    cause = streams[2].until("class")["causes"][0]["id"]
    assert driver.post(f"/class/{code}/experiment", json={"cause_id": cause, "mode": "live"}).status_code == 200
    run = next(iter(runs.runs.values()))
    append_event(run.run_dir, "tick", {"t_ms": 200})
    for stream in streams:
        stream.until("shown", run_id=run.run_id)
        stream.until("tick", t_ms=200)
    assert driver.post(f"/class/{code}/pause", json={"paused": True}).json()["run"]["paused"] is True
    for stream in streams:
        while not (stream.until("class")["run"] or {}).get("paused"):
            pass
    assert driver.post(f"/class/{code}/replay", json={}).status_code == 200
    for stream in streams:
        again = stream.until("shown", run_id=run.run_id)
        assert again["showing"] == 2
        assert stream.until("tick")["t_ms"] == 200, "from its beginning"
    assert driver.post(f"/class/{code}/experiment", json={"cause_id": "clear"}).json()["run"] is None
    for stream in streams:
        stream.until("shown", run_id=None)


def test_a_third_of_the_class_drops_and_comes_back_in_a_vote_and_no_vote_is_lost_or_doubled(
    driver: httpx.Client, client: Client, lobby: ClassState, classroom: Classroom, follow: Follow
) -> None:
    code, size = lobby.code, 20
    phones = [client() for _ in range(size)]
    for phone in phones:
        assert phone.post(f"/c/{code}/join", json={}).status_code == 200
    hands = [follow(phone, code) for phone in phones]
    desk = follow(driver, code, "console")
    act(driver, code, "next")
    options = [option["id"] for option in hands[0].until("class", state="vote")["item"]["options"]]
    desk.until("class", here=size)
    for number, hand in enumerate(hands):
        if number % 3 == 0:
            hand.close()
    assert desk.until("class", here=size - 7)["reconnecting"] == 7

    def cast(number: int) -> list[int]:
        """As a phone does: once, and the same again by the ones that were away, which cannot know whether it came through."""
        body = {"round": "first", "item_no": 1, "choice": options[number % len(options)]}
        return [phones[number].post(f"/c/{code}/vote", json=body).status_code for _ in range(2 if number % 3 == 0 else 1)]

    with ThreadPoolExecutor(8) as pool:
        assert {status for statuses in pool.map(cast, range(size)) for status in statuses} == {200}
    for number in range(0, size, 3):
        back = follow(phones[number], code)
        assert back.until("class")["me"]["votes"]["first"] == options[number % len(options)]
    assert desk.until("class", here=size, answered=size)["reconnecting"] == 0
    counts = classroom.console_view(code)["shares"]["options"]
    assert {option["id"]: option["n"] for option in counts} == {
        option: len(range(at, size, len(options))) for at, option in enumerate(options)
    }


def test_nobody_is_told_of_a_new_item_with_their_votes_on_the_one_before(
    driver: httpx.Client, client: Client, classroom: Classroom, follow: Follow
) -> None:
    code = classroom.create([LESSON, LESSON]).code
    phone = client()
    assert phone.post(f"/c/{code}/join", json={}).status_code == 200
    hand = follow(phone, code)
    act(driver, code, "next")
    option = hand.until("class", state="vote")["item"]["options"][0]["id"]
    assert phone.post(f"/c/{code}/vote", json={"round": "first", "item_no": 1, "choice": option}).status_code == 200
    act(driver, code, *["next"] * 8)
    while (view := hand.until("class", state="vote"))["item"]["no"] == 1:
        assert view["me"]["votes"]["first"] in (None, option)
    assert view["me"]["votes"]["first"] is None
    assert next(event for event in hand.seen if event.name == "class" and event.data["item"] and event.data["item"]["no"] == 2).data == view


def test_a_view_is_made_into_bytes_once_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(screens.json, "dumps", lambda value, **named: made.append(value) or json_dumps(value, **named))
    screen = screens.Screen("audience")
    viewers = [screens.ClassViewer(token=str(number), person=number, me=b'{"nickname":"%d"}' % number) for number in range(300)]
    screen.viewers.update(viewers)
    screen.tell({"role": "audience", "version": 1, "server_s": 1.0, "state": "vote"}, None)
    told = [screen.take(viewer) for viewer in viewers]
    assert len(made) == 1
    assert told[7] == b'event: class\ndata: {"role":"audience","version":1,"server_s":1.0,"state":"vote","me":{"nickname":"7"}}\n\n'
    screen.tell({"role": "audience", "version": 2, "server_s": 2.0, "state": "vote"}, None)
    assert [screen.take(viewer) for viewer in viewers[:3]] == [b""] * 3, "the clock and the version alone are no news to a phone"


def test_a_quiet_line_says_now_and_then_that_it_is_alive() -> None:
    screen = screens.Screen("projector")
    viewer = screens.ClassViewer()
    screen.viewers.add(viewer)
    screen.tell({"state": "lobby"}, None)
    screen.take(viewer)
    screen.beat(3600.0)
    assert screen.take(viewer) == b""
    screen.beat(0.0)
    assert (screen.take(viewer), screen.take(viewer)) == (b"event: beat\ndata: {}\n\n", b"")


def test_a_viewer_that_stops_reading_slows_nobody_and_is_let_go(
    driver: httpx.Client, phone: httpx.Client, client: Client, lobby: ClassState, follow: Follow, runs: PretendedRuns, url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(screens, "STALLED_S", 1.0)
    code = lobby.code
    to_experiments(driver, code)
    lazy = client()
    assert lazy.post(f"/c/{code}/join", json={}).status_code == 200
    host, port = url.removeprefix("http://").split(":")
    stuck = socket.socket()
    stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stuck.connect((host, int(port)))
    cookie = "; ".join(f"{name}={value}" for name, value in lazy.cookies.items())
    stuck.sendall(f"GET /live?class={code} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n".encode())
    hand, desk = follow(phone, code), follow(driver, code, "console")
    cause = desk.until("class", here=2)["causes"][0]["id"]
    driver.post(f"/class/{code}/experiment", json={"cause_id": cause})
    run = next(iter(runs.runs.values()))
    for number in range(40):
        append_event(run.run_dir, "tick", {"t_ms": number, "filling": "x" * 200_000})
        assert hand.until("tick")["t_ms"] == number
    assert desk.until("class", here=1)
    stuck.close()


def test_what_another_server_does_to_the_class_is_told_too(
    phone: httpx.Client, lobby: ClassState, store: Store, follow: Follow
) -> None:
    hand = follow(phone, lobby.code)
    hand.until("class", state="lobby")
    Classroom(store).act(lobby.code, "next")
    assert hand.until("class", state="vote")["may_vote"] is True


def test_a_class_that_is_deleted_ends_on_every_screen(
    driver: httpx.Client, phone: httpx.Client, lobby: ClassState, store: Store, classroom: Classroom, follow: Follow
) -> None:
    streams = [follow(phone, lobby.code), follow(driver, lobby.code, "console")]
    for stream in streams:
        stream.until("class", state="lobby")
    Classroom(store).delete(lobby.code)
    assert all(stream.ended() for stream in streams)
    assert follow(phone, lobby.code).response.status_code == 404


def test_the_end_of_a_timer_closes_the_vote_on_every_phone(
    driver: httpx.Client, phone: httpx.Client, lobby: ClassState, follow: Follow
) -> None:
    hand = follow(phone, lobby.code)
    act(driver, lobby.code, "next")
    act(driver, lobby.code, "timer", seconds=1)
    assert hand.until("class", may_vote=True, state="vote")
    while hand.until("class", state="vote")["may_vote"]:
        pass


@pytest.mark.parametrize(("query", "status"), [({"class": "ABCDEF"}, 404), ({"class": ""}, 404), ({"class": "x", "as": "owner"}, 400)])
def test_a_stream_of_nothing_is_refused(client: Client, query: dict[str, str], status: int) -> None:
    answer = client().get("/live", params=query)
    assert answer.status_code == status
    assert answer.json()["words"]


def test_nobody_takes_the_places_of_the_room(
    client: Client, driver: httpx.Client, phone: httpx.Client, lobby: ClassState, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "PROJECTORS", 2)
    monkeypatch.setattr(feed, "TABS", 2)
    other = client()
    assert other.post(f"/c/{lobby.code}/join", json={}).status_code == 200
    walls = [follow(client(), lobby.code, "projector") for _ in range(2)]
    assert all(wall.until("class") for wall in walls)
    refused = follow(client(), lobby.code, "projector")
    assert (refused.response.status_code, refused.response.headers["retry-after"]) == (503, "60")
    assert follow(driver, lobby.code, "projector").until("class"), "the room's own one"
    tabs = [follow(phone, lobby.code) for _ in range(2)]
    assert all(tab.until("class") for tab in tabs)
    assert follow(phone, lobby.code).until("class")
    assert tabs[0].ended(), "the oldest line, which may be one that a bad network has left behind"
    assert follow(other, lobby.code).until("class")


def test_a_run_is_followed_without_a_class_as_before(client: Client, runs: PretendedRuns) -> None:
    config = RunConfig.parse({"scenario": "sharded"})
    run = runs.start(config, viewer="x")
    append_event(run.run_dir, "tick", {"t_ms": 200})
    append_event(run.run_dir, "end", {"outcome": "finished", "expected": True, "t_ms": 200, "sentence": "", "summary": None})
    answer = client().get("/live", params={"run": run.run_id})
    assert answer.text.endswith('"summary":null}\n\n')
    assert "id: 1\nevent: tick" in answer.text


def test_streams_end_when_the_server_is_to_end(
    app: Starlette, driver: httpx.Client, phone: httpx.Client, lobby: ClassState, follow: Follow
) -> None:
    streams = [follow(phone, lobby.code), follow(driver, lobby.code, "console")]
    for stream in streams:
        stream.until("class")
    app.state.classes.feed._hub.closing = True
    assert all(stream.ended() for stream in streams)


def test_a_console_ends_where_its_instructor_signs_out(client: Client, lobby: ClassState) -> None:
    driver, other = client(), client()
    for each in (driver, other):
        assert each.post("/instructor/sign-in", data={"key": KEY}).status_code == 303
    desk, second = (Follower(each, lobby.code, "console") for each in (driver, other))
    wall = Follower(driver, lobby.code, "projector")
    for each in (desk, second, wall):
        each.until("class")
    assert driver.post("/instructor/sign-out").status_code == 303
    assert desk.ended()
    other.post(f"/class/{lobby.code}/do", json={"action": "next"})
    for each in (second, wall):
        assert each.until("class", state="vote")
        each.close()


def test_projectors_that_come_at_the_same_moment_are_no_more_than_those_that_come_in_turn(
    app: Starlette, client: Client, lobby: ClassState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "PROJECTORS", 2)
    room = app.state.classes.feed.room
    all_here, enter = threading.Barrier(6), Room.enter

    async def together(self: Room, *arguments: Any) -> None:
        await asyncio.to_thread(all_here.wait, 20)
        await enter(self, *arguments)

    monkeypatch.setattr(Room, "enter", together)
    with ThreadPoolExecutor(6) as pool:
        came = list(pool.map(lambda _: Follower(client(), lobby.code, "projector"), range(6)))
    assert Counter(each.response.status_code for each in came) == {200: 2, 503: 4}
    assert len(room(lobby.code).screens["projector"].viewers) == 2
    for each in came:
        each.close()
