"""The instructor of a benchmark, and what the store says afterwards: drives a class over HTTP, counts what was kept.

Owns no figures. The phones are `_class_phones.py`, a process of its own.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import select

from lessons.classroom import Classroom, ClassState
from lessons.learners import hashed
from lessons.store import open_store
from lessons.store.tables import participants, votes
from tests.browser.server import AppServer

KEY = "for-benchmarks-only"
ENVIRONMENT = {
    "SHARDLAB_INSTRUCTOR_KEY": KEY, "SHARDLAB_PARTICIPANTS_LIMIT": "5000", "SHARDLAB_JOINS_PER_CLIENT_LIMIT": "5000",
    "SHARDLAB_LIVE_RUNS": "1",
}  # fmt: skip
"""All phones have one network address here, which in a class with networks of its own they may have as well."""
LIMIT_S = 120.0


def make_class(data_dir: Path, lesson_id: str) -> ClassState:
    """A class in the lobby, made before the server starts, in its store."""
    store = open_store(data_dir)
    try:
        return Classroom(store).create([lesson_id])
    finally:
        store.close()


class Instructor:
    """Signed in, with a cookie."""

    def __init__(self, server: AppServer, code: str) -> None:
        self._port, self._code, self._cookie = server.port, code, ""

    def sign_in(self) -> None:
        body = urllib.parse.urlencode({"key": KEY})
        _, headers, _ = self._ask("POST", "/instructor/sign-in", body, "application/x-www-form-urlencoded")
        self._cookie = headers.get("set-cookie", "").partition(";")[0]
        if not self._cookie:
            raise RuntimeError("the server did not sign the instructor in")

    def do(self, action: str, **arguments: Any) -> dict[str, Any]:
        """One action; raises RuntimeError where it is refused."""
        return self._post(f"/class/{self._code}/do", {"action": action, **arguments})

    def experiment(self, cause_id: str) -> dict[str, Any]:
        return self._post(f"/class/{self._code}/experiment", {"cause_id": cause_id, "mode": "live"})

    def _post(self, path: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        status, _, body = self._ask("POST", path, json.dumps(fields), "application/json")
        if status != 200:
            raise RuntimeError(f"{path} {dict(fields)} was answered {status}: {body[:300]!r}")
        found = json.loads(body or b"{}")
        return found if isinstance(found, dict) else {}

    def _ask(self, method: str, path: str, body: str, media_type: str) -> tuple[int, Mapping[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            headers = {"Content-Type": media_type, **({"Cookie": self._cookie} if self._cookie else {})}
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()


class Phones:
    """The process with the phones, as a context manager."""

    def __init__(self, server: AppServer, code: str) -> None:
        script = str(Path(__file__).with_name("_class_phones.py"))
        command = [sys.executable, script, str(server.port), code]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self, **command: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the phones have gone")
        found = json.loads(line)
        assert isinstance(found, dict)
        return found

    def do(self, **command: Any) -> dict[str, Any]:
        self.begin(**command)
        return self.answer()

    def __enter__(self) -> Phones:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def kept(data_dir: Path, code: str, item_no: int, round_: str) -> dict[str, list[str]]:
    """Hash of a token -> every choice that the store has of it for this round."""
    store = open_store(data_dir)
    try:
        with store.read() as connection:
            rows = connection.execute(
                select(participants.c.token_hash, votes.c.choice)
                .join(votes, votes.c.participant_id == participants.c.id)
                .where(votes.c.code == code, votes.c.item_no == item_no, votes.c.round == round_)
            ).all()
    finally:
        store.close()
    found: dict[str, list[str]] = {}
    for token_hash, choice in rows:
        found.setdefault(token_hash, []).append(choice)
    return found


def lost_and_doubled(acknowledged: Mapping[str, str | None], stored: Mapping[str, list[str]]) -> tuple[int, int]:
    """Votes that were acknowledged and are not in the store as they were sent; votes that the store has and nobody sent."""
    sent = {hashed(token): choice for token, choice in acknowledged.items() if choice is not None}
    lost = sum(choice not in stored.get(token_hash, []) for token_hash, choice in sent.items())
    counted = sum(map(len, stored.values()))
    return lost, counted - sum(token_hash in stored for token_hash in sent)


def wait_for(true: Any) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {LIMIT_S:.0f} s")
        time.sleep(0.05)
