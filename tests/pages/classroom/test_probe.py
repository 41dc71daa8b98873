"""Asking an address as a phone would, and what each kind of answer is called."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from pages.classroom.probe import ask, in_container, interfaces
from tests.browser.server import free_port

HEALTH = {"status": "ok", "launcher": "ready", "records": "writable", "lessons": 3}


@contextmanager
def answering(body: bytes, status: int = 200, ahead_s: float = 0.0, wait_s: float = 0.0) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(wait_s)
            self.send_response_only(status if self.path == "/healthz" else 404)
            self.send_header("Date", formatdate(time.time() + ahead_s, usegmt=True))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_our_own_answer_with_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # a phone does not use it
    with answering(json.dumps(HEALTH).encode(), ahead_s=3600) as url:
        answer = ask(url)
    assert answer.ours
    assert answer.ahead_s == pytest.approx(3600, abs=60)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"status": "ok"}', b"\xff"])
def test_something_else(body: bytes) -> None:
    with answering(body) as url:
        assert (ask(url).ours, ask(url).fault) == (False, "is answered by something else")


def test_an_error() -> None:
    with answering(b"", status=502) as url:
        assert (ask(url).ours, ask(url).fault) == (False, "is answered with error 502")


def test_nobody_there() -> None:
    assert ask(f"http://127.0.0.1:{free_port()}").fault == "refuses connections"
    assert "nobody knows" in ask("http://no-such-name.invalid").fault


def test_no_answer_in_time() -> None:
    with answering(b"", wait_s=0.5) as url:
        assert "does not answer" in ask(url, limit_s=0.1).fault


def test_an_address_that_is_none() -> None:
    assert ask("nonsense").fault.startswith("cannot be opened")


def test_the_machines_addresses_leave_itself_out() -> None:
    assert all(each.kind != "loopback" for each in interfaces())
    assert len({each.address for each in interfaces()}) == len(interfaces())


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv", "var/run/secrets/kubernetes.io/serviceaccount"])
def test_a_container_is_known_by_its_mark(tmp_path: Path, mark: str) -> None:
    assert not in_container(tmp_path)
    (tmp_path / mark).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / mark).mkdir()
    assert in_container(tmp_path)
