"""Phones that vanish without a word: their kernel goes on answering for a process that is stopped, or nothing answers any more at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from lessons.classroom import ClassState
from pages.classroom import presence as presence_module
from pages.classroom import room as room_module
from tests.pages.classroom.made_class import wait_until
from tests.pages.classroom.streams import serving

PHONES = 3
ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import sys
from pages.classroom import rehearsal
rehearsal.SIGN_EVERY_S = 0.2
rehearsal.Rehearsal(sys.argv[1], sys.argv[2], count=int(sys.argv[3]), hurry=50.0)._thread.join()
"""
ADDRESSES = ("10.78.0.1", "10.78.0.2")


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=20)


@contextmanager
def cable() -> Iterator[tuple[str, str]]:
    """(network namespace of the phones, this machine's end of the cable to it); nothing where this user may not lay one."""
    name, here, there = (f"{word}{os.getpid() % 100_000}" for word in ("shardlab-p", "slp", "slq"))
    try:
        ip("netns", "add", name)
        ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
        ip("addr", "add", f"{ADDRESSES[0]}/24", "dev", here)
        ip("-n", name, "addr", "add", f"{ADDRESSES[1]}/24", "dev", there)
        ip("link", "set", here, "up")
        ip("-n", name, "link", "set", there, "up")
        laid = name, here
    except (OSError, subprocess.SubprocessError):
        laid = "", ""
    try:
        yield laid
    finally:
        with suppress(OSError):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence_module, "SILENT_S", 1.5)
    monkeypatch.setattr(room_module, "BEAT_S", 0.2)


@pytest.mark.parametrize("how", ["stopped", "out of range"])
def test_phones_that_vanish_are_reconnecting_and_then_not_there(
    app: Starlette, lobby: ClassState, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    classes = app.state.classes

    def counted() -> tuple[int, int]:
        found: tuple[int, int] = classes.feed.presence(lobby.code)
        return found

    with ExitStack() as stack:
        prefix, host, end = [], "127.0.0.1", ""
        if how == "out of range":
            name, end = stack.enter_context(cable())
        if end:
            prefix, host = ["ip", "netns", "exec", name], ADDRESSES[0]
        url = stack.enter_context(serving(app, host))
        phones = subprocess.Popen([*prefix, sys.executable, "-c", SCRIPT, url, lobby.code, str(PHONES)], cwd=ROOT)
        stack.callback(lambda: (phones.kill(), phones.wait()))
        wait_until(lambda: counted() == (PHONES, 0))
        wait_until(lambda: len(classes.feed.room(lobby.code).presence._heard) == PHONES)
        if end:
            ip("link", "set", end, "down")
        else:
            phones.send_signal(signal.SIGSTOP)
        wait_until(lambda: counted() == (0, PHONES))
        assert len(classes.feed.room(lobby.code).screens["audience"].viewers) == PHONES, "their lines look alive"
        monkeypatch.setattr(presence_module, "EXPECTED_S", 0.1)
        wait_until(lambda: counted() == (0, 0))
        if end:
            ip("link", "set", end, "up")
        else:
            phones.send_signal(signal.SIGCONT)
        wait_until(lambda: counted() == (PHONES, 0))


def test_a_sign_of_life_is_answered_alike_whoever_gives_it(browser: Callable[..., TestClient], lobby: ClassState) -> None:
    stranger = browser()
    for code in (lobby.code, "K7RP4W", "no-code-at-all"):
        answer = stranger.post(f"/c/{code}/here", json={})
        assert (answer.status_code, answer.content) == (204, b"")
    assert stranger.post(f"/c/{lobby.code}/here", json={}, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
