"""The collector on a real socket: live like any run, counted once, across restarts, and nothing that a stranger sends is believed."""

from __future__ import annotations

import errno
import hmac
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scenarios.cluster import collect_route, collected
from scenarios.cluster.collect_route import BODY_BYTES, WRONG_TOKENS
from scenarios.cluster.collected import ACCEPTED
from scenarios.cluster.importing import import_folder
from scenarios.cluster.parts import PartFile
from scenarios.cluster.posting import Post, Poster
from scenarios.record import end_of, read_events, samples_of, spans_of
from scenarios.run_folder import COLLECTOR, RunFolder
from tests.scenarios.cluster.collecting import TOKEN, App, collecting_app, free_port
from tests.scenarios.cluster.ranks import CONFIG, done, error, hello_of, step_of, whole_rank, write_part
from tests.scenarios.lifecycle.conftest import wait_until
from tests.scenarios.lifecycle.feed_server import events_in

RUN = "job-1234"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with collecting_app(tmp_path / "data") as app:
        yield app


def post(app: App, rank: int, messages: list[Any], *, first: int = 0, run: str = RUN, token: str = TOKEN) -> httpx.Response:
    batch = [[first + number, message] for number, message in enumerate(messages)]
    return httpx.post(
        f"{app.address}/collect/{run}", json={"rank": rank, "messages": batch}, headers={"Authorization": f"Bearer {token}"}, timeout=20
    )


def run_dir(app: App, run: str = RUN) -> Path:
    return app.runs.folder.path(run)


def end_data(app: App, run: str = RUN) -> dict[str, Any]:
    return wait_until(lambda: end_of(run_dir(app, run)), 15, "the end")


@pytest.fixture(scope="module")
def digest(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("parts")
    for rank in range(4):
        write_part(folder, rank, whole_rank(rank))
    return str(import_folder(folder, tmp_path_factory.mktemp("data"))[1]["summary"]["digest"])


def test_a_run_is_seen_live_and_ends_like_any_other(app: App, digest: str) -> None:
    for rank in range(4):
        assert post(app, rank, whole_rank(rank)[:9]).json()["next"] == 9
    now = app.runs.get(RUN)
    assert now is not None
    assert (now.state, now.config) == ("running", CONFIG)
    with httpx.stream("GET", f"{app.address}/live", params={"run": RUN}, timeout=20) as response:
        text = ""
        for part in response.iter_text():
            text += part
            if "event: tick" in text and "event: end" not in text and text.count("event: tick") == 6:
                for rank in range(4):
                    post(app, rank, whole_rank(rank)[9:], first=9)
    events = events_in(text)
    assert [name for _, name, _ in events] == [event["event"] for event in read_events(run_dir(app))]
    assert events[1][1] == "head"
    assert json.loads(events[1][2])["source"] == "virtual"
    assert events[-1][1] == "end"
    assert json.loads(events[-1][2])["summary"]["digest"] == digest
    assert app.runs.get(RUN).state == "finished"
    assert not (run_dir(app) / ACCEPTED).exists()
    assert httpx.get(f"{app.address}/runs/{RUN}/samples.csv").text.count("virtual") == 36


def test_what_is_sent_again_is_counted_once(app: App, digest: str) -> None:
    for rank in (3, 0, 2, 1):
        messages = whole_rank(rank)
        assert post(app, rank, messages[:5]).json()["next"] == 5
        assert post(app, rank, messages[:5]).json()["next"] == 5
        assert post(app, rank, messages[2:8], first=2).json()["next"] == 8
        assert post(app, rank, []).json()["next"] == 8
        missing = post(app, rank, messages[9:], first=9)
        assert (missing.status_code, missing.json()["next"]) == (409, 8)
        assert post(app, rank, messages[8:], first=8).json()["next"] == 14
    assert end_data(app)["summary"]["digest"] == digest
    assert len(list(spans_of(run_dir(app)))) == 4 * 12 * 3
    assert post(app, 2, whole_rank(2)[10:], first=10).status_code == 200, "a rank whose last answer was lost"
    late = post(app, 2, [step_of(2, 13)], first=14)
    assert (late.status_code, late.text) == (410, "This run is over; nothing more is taken.")


def test_a_restarted_app_goes_on_where_it_was(tmp_path: Path, digest: str) -> None:
    with collecting_app(tmp_path / "data") as app:
        for rank in range(4):
            post(app, rank, whole_rank(rank)[:8])
        before = read_events(run_dir(app))
    with (tmp_path / "data" / "runs" / RUN / ACCEPTED).open("ab") as file:
        file.write(b'[2,8,{"kind":"st')  # the app was killed while it wrote
    with (tmp_path / "data" / "runs" / RUN / "events.jsonl").open("ab") as file:
        file.write(b'{"id":9,"ev')
    with collecting_app(tmp_path / "data") as app:
        assert app.runs.get(RUN).state == "running"
        assert post(app, 1, whole_rank(1)[6:], first=6).json()["next"] == 14
        for rank in (0, 2, 3):
            post(app, rank, whole_rank(rank)[8:], first=8)
        assert end_data(app)["summary"]["digest"] == digest
        events = read_events(run_dir(app))
        assert events[: len(before)] == before
        assert [event["id"] for event in events] == list(range(1, len(events) + 1))
        assert len(list(spans_of(run_dir(app)))) == 4 * 12 * 3
        assert len(samples_of(run_dir(app))) == 4 * 9


def test_ranks_that_post_while_the_app_restarts_lose_nothing(tmp_path: Path, digest: str) -> None:
    """Four ranks' senders; the app is away for a while in the middle, and once more at the end."""
    port = free_port()
    parts = [PartFile(tmp_path / "room", run=RUN, rank=rank, kept=False) for rank in range(4)]
    posters = [Poster(part, Post(f"http://127.0.0.1:{port}", RUN, rank, TOKEN)) for rank, part in enumerate(parts)]
    with collecting_app(tmp_path / "data", port=port):
        for rank, part in enumerate(parts):
            for message in whole_rank(rank)[:6]:
                part.append(message)
        wait_until(lambda: sum(part.sent for part in parts) > 0, 15, "something sent")
    for rank, part in enumerate(parts):  # nobody is there: a rank does not notice
        for message in whole_rank(rank)[6:]:
            part.append(message)
    time.sleep(0.3)
    with collecting_app(tmp_path / "data", port=port) as app:
        assert [poster.close(20) for poster in posters] == [0, 0, 0, 0]
        assert end_data(app)["summary"]["digest"] == digest
    for part in parts:
        part.close()
    assert not (tmp_path / "room").exists()


def test_what_could_not_be_sent_stays_and_can_be_sent_later(app: App, tmp_path: Path, digest: str, monkeypatch, capsys) -> None:
    from scenarios.cli import main

    room = tmp_path / "room"
    for rank in range(4):
        part = PartFile(room, run=RUN, rank=rank, kept=False)
        for message in whole_rank(rank):
            part.append(message)
        poster = Poster(part, Post(f"http://127.0.0.1:{free_port()}", RUN, rank, TOKEN))
        assert poster.close(0.2) == 14
        assert "refused" in poster.last_error
        part.close()
    monkeypatch.setenv("SHARDLAB_COLLECT_TOKEN", TOKEN)
    assert main(["resend", str(room), "--collect", app.address]) == 0
    assert capsys.readouterr().out.splitlines() == [f"rank {rank}: 14 messages sent" for rank in range(4)]
    assert end_data(app)["summary"]["digest"] == digest
    assert main(["resend", str(room), "--collect", app.address]) == 0, "nothing new, nothing wrong"
    monkeypatch.setenv("SHARDLAB_COLLECT_TOKEN", "another-token-of-another-app")
    assert main(["resend", str(room), "--collect", app.address]) == 2
    assert "401: The token is missing or wrong" in capsys.readouterr().err


def test_parts_that_were_kept_for_import_need_a_name_to_be_resent(tmp_path: Path, monkeypatch, capsys) -> None:
    from scenarios.cli import main

    part = PartFile(tmp_path / "room", run="", rank=0, kept=True)
    part.append(hello_of(0))
    part.close()
    monkeypatch.setenv("SHARDLAB_COLLECT_TOKEN", TOKEN)
    assert main(["resend", str(tmp_path / "room"), "--collect", "http://127.0.0.1:1"]) == 2
    assert "--run-id NAME" in capsys.readouterr().err


def test_a_sender_that_is_refused_stops_and_says_why(app: App, tmp_path: Path) -> None:
    part = PartFile(tmp_path / "room", run=RUN, rank=0, kept=False)
    part.append(hello_of(0))
    poster = Poster(part, Post(app.address, RUN, 0, "not-the-token-at-all"))
    wait_until(lambda: poster.problem, 10, "a problem")
    assert poster.problem.startswith("401: The token is missing")
    assert poster.close(5) == 1
    part.close()


def test_an_app_that_lost_its_data_gets_it_again(tmp_path: Path, digest: str) -> None:
    port = free_port()
    parts = [PartFile(tmp_path / "room", run=RUN, rank=rank, kept=True) for rank in range(4)]
    posters = [Poster(part, Post(f"http://127.0.0.1:{port}", RUN, rank, TOKEN)) for rank, part in enumerate(parts)]
    with collecting_app(tmp_path / "first", port=port):
        for rank, part in enumerate(parts):
            for message in whole_rank(rank)[:6]:
                part.append(message)
        wait_until(lambda: [part.sent for part in parts] == [6] * 4, 15, "all sent")
    for rank, part in enumerate(parts):
        for message in whole_rank(rank)[6:]:
            part.append(message)
    with collecting_app(tmp_path / "second", port=port) as app:
        assert [poster.close(20) for poster in posters] == [0, 0, 0, 0]
        assert end_data(app)["summary"]["digest"] == digest


def test_a_disk_that_was_full_costs_nothing(app: App, digest: str, monkeypatch) -> None:
    real = os.pwrite
    for rank in range(4):
        post(app, rank, whole_rank(rank)[:4])

    def full(fd: int, data: bytes, offset: int) -> int:
        real(fd, data[:10], offset)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(collected.os, "pwrite", full)
    refused = post(app, 0, whole_rank(0)[4:], first=4)
    assert (refused.status_code, refused.headers["retry-after"]) == (507, "5")
    assert "No space left" in refused.text
    monkeypatch.setattr(collected.os, "pwrite", real)
    for rank in range(4):
        assert post(app, rank, whole_rank(rank)[4:], first=4).json()["next"] == 14
    assert end_data(app)["summary"]["digest"] == digest


# Ends


def test_a_failed_rank_ends_the_run_once_the_others_had_time(app: App) -> None:
    for rank in range(4):
        post(app, rank, whole_rank(rank)[:6])
    for rank in (0, 1):
        post(app, rank, [error("RuntimeError", "Connection closed by peer [10.0.0.2]:1")], first=6)
    end = end_data(app)
    assert (end["outcome"], end["node"]["node"], end["node"]["host"]) == ("failed", 1, "host-b")
    assert end["sentence"] == "Node 1 (host-b, ranks 2 to 3) went away: nothing was heard of it again."
    assert wait_until(lambda: app.runs.get(RUN).over, 5)


def test_a_job_that_fell_silent_is_over(tmp_path: Path) -> None:
    with collecting_app(tmp_path / "data", silence_s=0.5) as app:
        for rank in range(4):
            post(app, rank, whole_rank(rank)[:6])
        assert end_data(app)["outcome"] == "failed"


def test_without_a_collector_an_unfinished_run_was_interrupted(tmp_path: Path) -> None:
    with collecting_app(tmp_path / "data") as app:
        post(app, 0, [hello_of(0), step_of(0, 1)])
    with collecting_app(tmp_path / "data", token="") as app:
        assert app.runs.get(RUN).state == "interrupted"
    assert [entry.owner for entry in RunFolder(tmp_path / "data").load()] == [COLLECTOR]


def test_one_server_collects_into_a_folder(app: App, tmp_path: Path) -> None:
    post(app, 0, [hello_of(0), step_of(0, 1)])
    with collecting_app(tmp_path / "data") as second:
        refused = post(second, 0, whole_rank(0)[2:], first=2)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert second.runs.get(RUN).state == "running", "the other server's run is not interrupted"
        assert post(app, 0, whole_rank(0)[2:], first=2).status_code == 200


# Strangers


def test_without_a_token_nothing_is_collected(tmp_path: Path) -> None:
    with collecting_app(tmp_path / "data", token="") as app:
        refused = post(app, 0, [hello_of(0)])
        assert (refused.status_code, refused.text) == (404, "This app collects no runs: SHARDLAB_COLLECT_TOKEN is not set.")


def test_the_token_is_wanted_and_compared_in_constant_time(app: App, monkeypatch) -> None:
    compared: list[tuple[int, int]] = []

    def spy(given: bytes, wanted: bytes, real: Any = hmac.compare_digest) -> bool:
        compared.append((len(given), len(wanted)))
        return bool(real(given, wanted))

    monkeypatch.setattr(hmac, "compare_digest", spy)
    url = f"{app.address}/collect/{RUN}"
    for headers in ({}, {"Authorization": "Bearer"}, {"Authorization": f"Bearer {TOKEN[:-1]}"}, {"Authorization": f"Basic {TOKEN}"}):
        refused = httpx.post(url, content=b"{}", headers=headers)
        assert refused.status_code == 401
        assert TOKEN not in refused.text
    assert compared == [(32, 32)] * 4
    assert not run_dir(app).exists()
    assert httpx.get(url).status_code == 405


def test_guessing_the_token_is_slowed_down(app: App) -> None:
    codes = [post(app, 0, [], token=f"wrong-{number}").status_code for number in range(WRONG_TOKENS + 2)]
    assert codes == [401] * WRONG_TOKENS + [429] * 2


STEP = step_of(0, 1)
HOSTILE: dict[str, tuple[bytes | Any, str]] = {
    "no JSON": (b"\xff\xfe", "must be JSON"),
    "nothing": (b"", "must be JSON"),
    "a list": ([], "must be JSON"),
    "deep": (b'{"rank":0,"messages":' + b"[" * 100_000, "must be JSON"),
    "no rank": ({"messages": []}, "must be JSON"),
    "rank 64": ({"rank": 64, "messages": []}, "rank must be an integer from 0 to 63"),
    "rank true": ({"rank": True, "messages": []}, "rank must be"),
    "rank text": ({"rank": "0", "messages": []}, "rank must be"),
    "numbers apart": ({"rank": 0, "messages": [[0, hello_of(0)], [2, STEP]]}, "follow each other"),
    "number below 0": ({"rank": 0, "messages": [[-1, hello_of(0)]]}, "must not be negative"),
    "number real": ({"rank": 0, "messages": [[0.0, hello_of(0)]]}, "must be integers"),
    "no message": ({"rank": 0, "messages": [[0, 7]]}, "must be an object"),
    "kind list": ({"rank": 0, "messages": [[0, {"kind": []}]]}, "must be an object"),
    "kind": ({"rank": 0, "messages": [[0, {"kind": "rm"}]]}, "whose kind is one of hello, step, done, error"),
    "step first": ({"rank": 0, "messages": [[0, STEP]]}, "must be its hello"),
    "other rank": ({"rank": 1, "messages": [[0, hello_of(0)]]}, "must name that rank"),
    "config": ({"rank": 0, "messages": [[0, {**hello_of(0), "config": {"scenario": "../x"}}]]}, "scenario='../x': must be one of"),
    "world": ({"rank": 0, "messages": [[0, {**hello_of(0), "world": 8}]]}, "as many ranks as its config has GPUs"),
    "host": ({"rank": 0, "messages": [[0, {**hello_of(0), "host": "<script>"}]]}, "host"),
}
STEPS: dict[str, tuple[dict[str, Any], str]] = {
    "time back": ({"end_ns": -1}, "end_ns"),
    "time far": ({"end_ns": 700 * 10**9}, "at most 600 s after"),
    "time huge": ({"end_ns": 10**30}, "end_ns"),
    "time real": ({"end_ns": 1.5}, "end_ns"),
    "memory": ({"memory_gib": "lots"}, "memory_gib"),
    "not a number": ({"memory_gib": float("nan")}, "memory_gib"),
    "infinite": ({"progress": float("inf")}, "progress"),
    "no steps": ({"steps_per_epoch": 0}, "steps_per_epoch"),
    "spans": ({"spans": [[0, "compute", "forward"]]}, "A span must be"),
    "span of another": ({"spans": [[1, "compute", "forward", 1, 0, 5, 5, 0.5]]}, "of rank 0"),
    "span kind": ({"spans": [[0, "compute", "<b>", 1, 0, 5, 5, 0.5]]}, "A span must be"),
    "span back": ({"spans": [[0, "compute", "forward", 1, 5, 5, 0, 0.5]]}, "in order of time"),
    "span unhashable": ({"spans": [[0, [], {}, 1, 0, 5, 5, 0.5]]}, "A span must be"),
    "many spans": ({"spans": [[0, "compute", "forward", 1, 0, 5, 5, 0.5]] * 5000}, "spans"),
    "serials": ({"serials": "%%%"}, "base64"),
    "serials odd": ({"serials": "AAA="}, "32-bit"),
    "serials below 0": ({"serials": "/////w=="}, "not be negative"),
    "missing": ({"apart": None}, "apart"),
}


@pytest.fixture(scope="module")
def shared_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    with collecting_app(tmp_path_factory.mktemp("data")) as app:
        yield app


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_batch_is_refused_with_a_sentence(shared_app: App, name: str) -> None:
    body, said = HOSTILE[name]
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    refused = httpx.post(f"{shared_app.address}/collect/hostile-1", content=content, headers={"Authorization": f"Bearer {TOKEN}"})
    assert refused.status_code == 400
    assert said in refused.text
    assert len(refused.text) < 600
    assert not run_dir(shared_app, "hostile-1").exists()


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_cannot_be_is_refused_and_changes_nothing(shared_app: App, name: str) -> None:
    assert post(shared_app, 0, [hello_of(0)], run="hostile-2").status_code == 200
    change, said = STEPS[name]
    step = {key: value for key, value in {**STEP, **change}.items() if value is not None}
    body = json.dumps({"rank": 0, "messages": [[1, STEP], [2, {**step, "step": 2}]]}).encode()
    refused = httpx.post(f"{shared_app.address}/collect/hostile-2", content=body, headers={"Authorization": f"Bearer {TOKEN}"})
    assert refused.status_code == 400
    assert said in refused.text
    assert post(shared_app, 0, [], run="hostile-2").json()["next"] == 1


def test_messages_out_of_turn_are_refused(shared_app: App) -> None:
    run = "hostile-3"
    assert post(shared_app, 0, [hello_of(0), step_of(0, 1)], run=run).status_code == 200
    assert "has said hello already" in post(shared_app, 0, [hello_of(0)], first=2, run=run).text
    assert "has not said hello" in post(shared_app, 1, [step_of(1, 1)], run=run).text
    assert "another config" in post(shared_app, 1, [hello_of(1, CONFIG.model_copy(update={"seed": 7}))], run=run).text
    assert "has ended already" in post(shared_app, 0, [done(), step_of(0, 2)], first=2, run=run).text
    assert post(shared_app, 0, [done()], first=2, run=run).status_code == 200
    assert "has ended already" in post(shared_app, 0, [step_of(0, 2)], first=3, run=run).text


def test_an_unknown_run_has_to_begin_at_its_beginning(shared_app: App) -> None:
    refused = post(shared_app, 0, [step_of(0, 5)], first=5, run="never-heard-of")
    assert (refused.status_code, refused.json()["next"]) == (409, 0)


@pytest.mark.parametrize("run", ["short", "a" * 41, "..%2f..%2fetc", "with space", "dot.dot.dot"])
def test_an_id_that_is_none_makes_no_folder(shared_app: App, run: str) -> None:
    assert post(shared_app, 0, [hello_of(0)], run=run).status_code in (400, 404)
    assert all(path.name.startswith(("hostile", "never")) for path in shared_app.runs.folder.root.iterdir())


def test_a_run_made_here_cannot_be_written_to(app: App) -> None:
    entry = app.runs.folder.new_entry(CONFIG, "fast")
    app.runs.folder.create(entry)
    refused = post(app, 0, [hello_of(0)], run=entry.run_id)
    assert (refused.status_code, refused.json()["next"]) == (409, None)
    assert not (run_dir(app, entry.run_id) / ACCEPTED).exists()


def test_a_batch_that_is_too_large_is_not_read(shared_app: App) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    url = f"{shared_app.address}/collect/hostile-4"
    assert httpx.post(url, content=b" " * (BODY_BYTES + 1), headers=headers).status_code == 413
    assert httpx.post(url, content=(b" " * (1 << 20) for _ in range(5)), headers=headers).status_code == 413


def test_a_flood_of_batches_is_told_to_slow_down(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(collect_route, "BURST", 5.0)
    monkeypatch.setattr(collect_route, "REQUESTS_PER_S", 0.001)
    with collecting_app(tmp_path / "data") as app:
        answers = [post(app, 0, [hello_of(0)] if number == 0 else []) for number in range(7)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 2
    assert answers[-1].headers["retry-after"] == "1"


def test_only_so_many_runs_at_once(tmp_path: Path) -> None:
    with collecting_app(tmp_path / "data") as app:
        codes = [post(app, 0, [hello_of(0)], run=f"flood-{number:04}").status_code for number in range(18)]
    assert codes == [200] * 16 + [429] * 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(field=st.sampled_from(sorted(step_of(0, 1))), value=JSON, row=JSON)
def test_no_field_brings_the_collector_down(shared_app: App, field: str, value: Any, row: Any) -> None:
    shared_app.collector.accept("hostile-5", json.dumps({"rank": 0, "messages": [[0, hello_of(0)]]}).encode())
    wanted = shared_app.collector.accept("hostile-5", b'{"rank": 0, "messages": []}').next
    step = {**step_of(0, 1), field: value}
    if field == "spans":
        step["spans"] = [row, [0, "compute", "forward", 1, 0, 5, 5, value]]
    for message in (step, value):
        reply = shared_app.collector.accept("hostile-5", json.dumps({"rank": 0, "messages": [[wanted, message]]}).encode())
        assert reply.status in (200, 400)
        assert reply.text or reply.status == 200
        wanted = reply.next or wanted
