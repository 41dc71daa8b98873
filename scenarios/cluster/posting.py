"""Sending a rank's part to the collector of a running app while it grows: batches, retries with backoff, nothing counted twice.

Owns the thread that sends. It reads what lies on disk, so that it holds one batch in memory however long the app is away, and whoever
writes the part never waits for the network.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from scenarios.cluster.parts import PartFile

BATCH_BYTES = 512 << 10
GATHER_S = 0.5
"""How long messages gather before a batch is sent."""
HEARTBEAT_S = 5.0
"""A rank in a long step says that it is there."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.25, 5.0
REQUEST_LIMIT_S = 15.0
RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504, 507})


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the collector said to one batch. `status` 0: nothing was heard."""

    status: int
    text: str
    wait_s: float = 0.0
    next: int | None = None
    """The number of the message that it wants next."""

    @property
    def accepted(self) -> bool:
        return self.status == 200

    @property
    def worth_retrying(self) -> bool:
        return self.status == 0 or self.status in RETRIED


class Post:
    """One address and token."""

    def __init__(self, address: str, run: str, rank: int, token: str) -> None:
        self.url = f"{address}/collect/{run}"
        self._rank = rank
        self._token = token

    def send(self, lines: list[bytes]) -> Answer:
        """Lines of a part, as they lie in it."""
        body = b'{"rank":%d,"messages":[%s]}' % (self._rank, b",".join(lines))
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url, data=body, headers=headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_LIMIT_S) as response:
                return Answer(status=response.status, text="", next=_next(response.read(4096)))
        except urllib.error.HTTPError as error:
            text = error.read(4096)
            said = " ".join(text.decode(errors="replace").split())[:300]
            wait_s = _seconds(error.headers.get("Retry-After"))
            return Answer(status=error.code, text=f"{error.code}: {said}", wait_s=wait_s, next=_next(text))
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            return Answer(status=0, text=str(getattr(reason, "strerror", None) or reason))


class Poster:
    """Sends `part` until it is closed. `problem` says why it stopped, where it did for good."""

    def __init__(self, part: PartFile, post: Post) -> None:
        self._part = part
        self._post = post
        self._wake = threading.Event()
        self._closing = False
        self._deadline_s = float("inf")
        self._wait_s = 0.0
        self.problem = ""
        self.last_error = ""
        self._thread = threading.Thread(target=self._run, name="poster", daemon=True)
        self._thread.start()

    def close(self, limit_s: float) -> int:
        """Send what is left, for at most so long; returns how many messages could not be sent."""
        self._deadline_s = time.monotonic() + limit_s
        self._closing = True
        self._wake.set()
        self._thread.join(limit_s + REQUEST_LIMIT_S)
        return self._part.unsent

    def _run(self) -> None:
        last_s = time.monotonic()
        while not self.problem and time.monotonic() < self._deadline_s:
            lines = self._part.batch(BATCH_BYTES)
            if not lines and self._closing:
                return
            if not lines and time.monotonic() - last_s < HEARTBEAT_S:
                self._pause(GATHER_S)
                continue
            answer = self._post.send(lines)
            last_s = time.monotonic()
            if answer.accepted:
                self._part.mark_sent(lines)
                self._wait_s = 0.0
                self._pause(GATHER_S)
            elif answer.status == 409 and answer.next is not None and self._part.send_again_from(answer.next):
                self._pause(GATHER_S)  # the collector has lost what it had: it is still here
            elif answer.worth_retrying:
                self.last_error = answer.text
                self._wait_s = min(LONGEST_WAIT_S, max(FIRST_WAIT_S, 2 * self._wait_s))
                # A closing rank keeps to the pace too: all ranks come back to an app that has just restarted.
                time.sleep(min(max(self._wait_s, answer.wait_s), LONGEST_WAIT_S) * random.uniform(0.7, 1.0))
            else:
                self.problem = answer.text

    def _pause(self, seconds: float) -> None:
        if not self._closing:
            self._wake.wait(seconds)


def _next(text: bytes) -> int | None:
    try:
        found: Any = json.loads(text)["next"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, int) else None


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isascii() and text.isdigit() else 0.0
