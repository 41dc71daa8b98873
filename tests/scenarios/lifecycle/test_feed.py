"""The live feed over real sockets: order, resume, queue notices, ends, limits, and viewers that leave or stop reading."""

from __future__ import annotations

import csv
import gc
import io
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from scenarios import feed, tail
from scenarios.record import append_event
from scenarios.runs import Run, Runs
from tests.scenarios.lifecycle.conftest import MakeRuns, ended, paced, wait_until
from tests.scenarios.lifecycle.feed_server import events_in, feed_server

TICKS = 15


@pytest.fixture
def runs(make_runs: MakeRuns) -> Runs:
    return make_runs()


@pytest.fixture
def client(runs: Runs) -> Iterator[httpx.Client]:
    with feed_server(runs) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
        yield client


def live(client: httpx.Client, run: Run, **headers: str) -> httpx.Response:
    sent = {name.replace("_", "-"): text for name, text in headers.items()}
    return client.get("/live", params={"run": run.run_id, "class": ""}, headers=sent)


def test_a_live_run_is_told_from_its_first_event_to_its_end(runs: Runs, client: httpx.Client) -> None:
    run = runs.start(paced(TICKS), viewer="a")
    response = live(client, run)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.text.startswith("retry: 2000\n\n")
    events = [event for event in events_in(response.text) if event[0] is not None]
    assert [number for number, _, _ in events] == list(range(1, TICKS + 5))
    assert [name for _, name, _ in events] == ["state", "head", "state", *["tick"] * TICKS, "end"]
    assert "sharded" not in response.text, "nothing names the experiment"


def test_a_hidden_run_says_nothing_about_itself(runs: Runs, client: httpx.Client) -> None:
    run = runs.start(paced(TICKS), viewer="a", hidden=True)
    text = live(client, run).text
    sentences = [json.loads(data)["sentence"] for _, name, data in events_in(text) if name == "end"]
    assert sentences == [tail.UNTOLD]
    assert '"processes":' in live(client, ended(runs, runs.start(paced(TICKS, seed=1), viewer="a"))).text
    for secret in ("sharded", run.key, f"{TICKS} ticks", '"processes":'):
        assert secret not in text
    csv_text = client.get(f"/runs/{run.run_id}/samples.csv").text
    assert csv_text.startswith("source,time_s")
    assert "sharded" not in csv_text
    assert client.get(f"/runs/{run.run_id}/trace.json").status_code == 403
    runs.reveal(run.run_id)
    assert client.get(f"/runs/{run.run_id}/trace.json").status_code == 200


def test_ticks_arrive_while_the_run_goes_on(runs: Runs, client: httpx.Client) -> None:
    run = runs.start(paced(50), viewer="a")
    with client.stream("GET", "/live", params={"run": run.run_id}) as response:
        text = ""
        for part in response.iter_text():
            text += part
            if "event: tick" in text:
                break
    now = runs.get(run.run_id)
    assert now is not None
    assert not now.over


def test_a_viewer_that_comes_back_gets_what_it_missed_then_nothing_more(runs: Runs, client: httpx.Client) -> None:
    run = ended(runs, runs.start(paced(TICKS), viewer="a"))
    last = TICKS + 4
    assert [number for number, _, _ in events_in(live(client, run, Last_Event_ID="10").text)] == list(range(11, last + 1))
    assert len(events_in(live(client, run, Last_Event_ID="not a number").text)) == last
    assert live(client, run, Last_Event_ID=str(last)).status_code == 204
    assert live(client, run, Last_Event_ID=str(last + 5)).status_code == 204


def test_a_waiting_run_tells_its_place_and_offers_a_recording(runs: Runs, client: httpx.Client) -> None:
    recorded = ended(runs, runs.start(paced(5), viewer="a"))
    blocking = runs.start(paced(1000, seed=1), viewer="a")
    waiting = runs.start(paced(5), viewer="a")
    with client.stream("GET", "/live", params={"run": waiting.run_id}) as response:
        text = ""
        for part in response.iter_text():
            text += part
            if "event: state" in text and "event: end" not in text:
                runs.stop(blocking.run_id, "a")
    events = events_in(text)
    number, name, data = events[0]
    notice = json.loads(data)
    assert (number, name, notice["state"], notice["place"]) == (None, "state", "queued", 1)
    assert notice["recording"] == recorded.run_id
    assert notice["recorded_s"] == pytest.approx(recorded.created_s)
    assert notice["wait_s"] > 0
    assert events[-1][1] == "end"


def test_a_run_that_was_never_recorded_ends_for_its_viewers(
    runs: Runs, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runs.folder, "create", full)
    run = runs.start(paced(5), viewer="a")
    ((number, name, data),) = events_in(live(client, run).text)
    assert (number, name) == (1, "end")
    assert json.loads(data)["sentence"].startswith("The disk is full")
    assert live(client, run, Last_Event_ID="1").status_code == 204


@pytest.mark.parametrize("run_id", ["nosuchrun123", "..%2F..%2Fetc%2Fpasswd", "a%00bcdefgh", "x" * 300])
def test_unknown_and_odd_ids_are_not_found(client: httpx.Client, run_id: str) -> None:
    for path in (f"/live?run={run_id}", f"/runs/{run_id}/trace.json", f"/runs/{run_id}/samples.csv"):
        assert client.get(path).status_code == 404
    assert client.get("/live").status_code == 400


def test_too_many_viewers_are_told_so(make_runs: MakeRuns) -> None:
    runs = make_runs(viewers_limit=3, viewers_per_client_limit=2)
    run = runs.start(paced(1000), viewer="a")
    with feed_server(runs) as port:
        viewers = [open_stream(port, run) for _ in range(2)]
        for viewer in viewers:
            wait_for(viewer, b"event: tick")
        refused = httpx.get(f"http://127.0.0.1:{port}/live", params={"run": run.run_id})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "60")
        assert refused.text == "2 viewers are connected from your network. Please try again in a minute."
        viewers[0].close()

        def admitted() -> bool:
            with httpx.stream("GET", f"http://127.0.0.1:{port}/live", params={"run": run.run_id}) as response:
                return response.status_code == 200

        wait_until(admitted, 5, "a viewer that left makes room")
        viewers[1].close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_end_does_not_wait_for_its_viewers(tmp_path: Path, number: signal.Signals) -> None:
    script = str(Path(__file__).with_name("ending_server.py"))
    with subprocess.Popen([sys.executable, script, str(tmp_path)], stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            told = json.loads(server.stdout.readline())
            viewer = open_stream(told["port"], told["run_id"])
            wait_for(viewer, b"event: tick")
            server.send_signal(number)
            server.wait(5)
        finally:
            server.kill()
    while viewer.recv(65_536):
        pass
    viewer.close()


def open_stream(port: int, run: Run | str, buffer_bytes: int = 0) -> socket.socket:
    viewer = socket.socket()
    if buffer_bytes:
        viewer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    viewer.connect(("127.0.0.1", port))
    run_id = run if isinstance(run, str) else run.run_id
    viewer.sendall(f"GET /live?run={run_id} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    viewer.settimeout(10)
    return viewer


def wait_for(viewer: socket.socket, text: bytes) -> bytes:
    received = b""
    while text not in received:
        data = viewer.recv(65_536)
        assert data, "the stream ended early"
        received += data
    return received


def test_a_viewer_that_stops_reading_slows_nobody_and_is_let_go(make_runs: MakeRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "STALLED_S", 1.0)
    runs = make_runs()
    run = runs.start(paced(250), viewer="a")
    with feed_server(runs) as port:
        stuck = open_stream(port, run, buffer_bytes=2048)
        wait_for(stuck, b"event: head")
        wait_until(lambda: run.run_dir.joinpath("events.jsonl").exists())
        filler = {"text": "x" * 200_000}
        reader = open_stream(port, run)
        started_s = time.monotonic()
        # Too much for the stuck viewer's buffers, as a long absence would be.
        hub_tail = tail_of(run)
        for number in range(40):
            hub_tail._add(10_000 + number, "strip", filler)
        wait_for(reader, b'"step":200')
        assert time.monotonic() - started_s < 250 * 0.02 + 3
        wait_until(lambda: len(hub_tail.viewers) <= 1, 6, "the stuck viewer is let go")
        stuck.close()
        reader.close()


def tail_of(run: Run) -> tail.Tail:
    """The tail that the server's hub made for `run`."""
    tails = [found for found in gc.get_objects() if isinstance(found, tail.Tail) and found.run.run_id == run.run_id]
    assert len(tails) == 1
    return tails[0]


def test_viewers_that_come_and_go_leave_nothing_behind(runs: Runs) -> None:
    run = runs.start(paced(1000), viewer="a")
    with feed_server(runs) as port:
        for _ in range(30):
            viewer = open_stream(port, run)
            wait_for(viewer, b"event: head")
            viewer.close()
        wait_until(lambda: not tail_of(run).viewers, 5, "no viewer is left")


def test_a_record_cut_in_the_middle_of_a_line_goes_on_with_its_end(runs: Runs, client: httpx.Client) -> None:
    run = ended(runs, runs.start(paced(5), viewer="a"))
    path = run.run_dir / "events.jsonl"
    path.write_bytes(path.read_bytes()[:-200])
    append_event(run.run_dir, "end", {"outcome": "interrupted", "sentence": "Cut."})
    events = events_in(live(client, run).text)
    assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
    assert events[-1][1] == "end"


def test_exports_and_health(runs: Runs, client: httpx.Client) -> None:
    run = ended(runs, runs.start(paced(5), viewer="a"))
    trace = client.get(f"/runs/{run.run_id}/trace.json")
    assert trace.json() == {"displayTimeUnit": "ms", "source": "virtual", "traceEvents": []}
    assert trace.headers["content-disposition"] == f'attachment; filename="trace-{run.run_id}.json"'
    table = client.get(f"/runs/{run.run_id}/samples.csv")
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert len(rows) == 5 * run.config.gpus
    assert rows[0]["source"] == "virtual"
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
    for response in (trace, table):
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-content-type-options"] == "nosniff"
    health: dict[str, Any] = client.get("/healthz").json()
    assert (health["status"], health["launcher"], health["live"]) == ("ok", "ready", 0)


def test_heartbeats_keep_a_quiet_stream_open(make_runs: MakeRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "HEARTBEAT_S", 0.2)
    runs = make_runs()
    runs.start(paced(1000), viewer="a")
    waiting = runs.start(paced(5, seed=1), viewer="a")
    with feed_server(runs) as port:
        viewer = open_stream(port, waiting)
        wait_for(viewer, b": still here")
        viewer.close()


def test_the_limits_are_those_of_the_design() -> None:
    assert (tail.HEARTBEAT_S, feed.RETRY_MS) == (15.0, 2_000)


def test_a_class_is_answered_by_whoever_knows_classes_within_the_limits_on_viewers(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def by_class(hub: tail.Hub) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            asked.append(scope["query_string"].decode())
            await PlainTextResponse("a class")(scope, receive, send)

        return answer

    client = TestClient(Starlette(routes=list(feed.live_routes(runs, by_class=by_class))))
    assert client.get("/live", params={"class": "ABC234"}).text == "a class"
    assert client.get("/live", params={"run": "x"}).status_code == 404
    assert asked == ["class=ABC234"]
    full = runs.settings.model_copy(update={"viewers_limit": 0})
    monkeypatch.setattr(runs, "settings", full)
    client = TestClient(Starlette(routes=list(feed.live_routes(runs, by_class=by_class))))
    assert client.get("/live", params={"class": "ABC234"}).status_code == 503
