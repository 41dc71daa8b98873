"""One tail per live record, shared by all its viewers: every event is read and made into bytes once.

Owns reading records as they grow and telling waiting viewers; knows nothing of HTTP. Lives in one event loop, without locks.
A viewer holds no queue of its own, only its position in the shared frames: a slow one costs nothing and slows nobody.
"""

from __future__ import annotations

import asyncio
import json
import time
from bisect import bisect_right
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import IO, Any

from scenarios.exit_signals import on_exit_signal
from scenarios.record import EVENTS, is_event
from scenarios.runs import Run, Runs

POLL_S = 0.025
STATE_EVERY_S = 0.5
"""How often a tail asks about its run: place in the queue, or over."""
HEARTBEAT_S = 15.0
IDLE_S = 5.0
STALLED_S = 20.0
"""A viewer that has not taken its bytes for so long is let go; it may come back with Last-Event-ID."""
READ_BYTES = 1 << 20
FRAMES_BYTES = 32 << 20
"""Frames kept per run; a longer record loses its oldest ticks in the feed, never in the exports."""
KEPT_AT_HEAD = 3
"""What comes before the first tick: it says what the ticks mean."""
FINISHED_KEPT = 8

UNTOLD = "It has ended. What the figures say is for you to find out."
"""Instead of the sentence about a run that hides what it is."""

HEARTBEAT = b": still here\n\n"

TELLING = ("processes",)
"""Figures of a whole run that one cause alone has, and that no picture shows."""


def frame(event: str, data: dict[str, Any], event_id: int | None = None) -> bytes:
    """One server-sent event."""
    head = "" if event_id is None else f"id: {event_id}\n"
    return f"{head}event: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def _untold(event: str, data: dict[str, Any]) -> dict[str, Any]:
    """An event of a run that is to be found out, without what would name its cause."""
    data = {name: value for name, value in data.items() if name not in TELLING}
    if event != "end":
        return data
    summary = data.get("summary")
    if summary is not None:
        data["summary"] = {name: value for name, value in summary.items() if name not in TELLING}
    return {**data, "sentence": UNTOLD, "meaning": None}


class Viewer:
    """One open response: what it has sent, and the way to wake it."""

    __slots__ = ("_wake", "gone", "notice", "position", "sending_since_s", "task")

    def __init__(self, position: int) -> None:
        self.position = position
        """Number of frames passed since the record's first, dropped ones included."""
        self.notice = 0
        self.gone = False
        self.sending_since_s: float | None = None
        self.task: asyncio.Task[Any] | None = None
        self._wake: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def let_go(self) -> None:
        """End its response: in good order where it listens, at once where it does not take its bytes."""
        self.gone = True
        if self.sending_since_s is not None and self.task is not None:
            self.task.cancel()
        self.wake()

    async def wait(self) -> None:
        self._wake = asyncio.get_running_loop().create_future()
        await self._wake
        self._wake = None


class Tail:
    """The frames of one run, growing until `over`."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.over = False
        self.viewers: set[Viewer] = set()
        self._frames: list[bytes] = []
        self._ids: list[int] = []
        self._dropped = 0
        self._bytes = 0
        self._offset = 0
        self._file: IO[bytes] | None = None
        self._notice = b""
        self._notices = 0
        self._last_s = time.monotonic()
        self._asked_s = self._watched_s = time.monotonic()

    @property
    def last_id(self) -> int:
        return self._ids[-1] if self._ids else 0

    def position_after(self, event_id: int) -> int:
        return self._dropped + bisect_right(self._ids, event_id)

    def take(self, viewer: Viewer) -> bytes:
        """Everything `viewer` has not been given yet."""
        start = max(0, viewer.position - self._dropped)
        chunk = self._frames[-1] if start == len(self._frames) - 1 else b"".join(self._frames[start:])
        viewer.position = self._dropped + len(self._frames)
        if viewer.notice != self._notices:
            viewer.notice = self._notices
            if not chunk:
                return self._notice
        return chunk

    def poll(self) -> None:
        """Read what is new, and wake the viewers if there is anything for them."""
        now_s = time.monotonic()
        if self.viewers:
            self._watched_s = now_s
        if not self._read() and now_s - self._last_s > HEARTBEAT_S:
            self._announce(HEARTBEAT)

    @property
    def idle(self) -> bool:
        """Nobody watches: at once for a run that is over, after a while for one that goes on."""
        return not self.viewers and (self.over or time.monotonic() - self._watched_s > IDLE_S)

    def needs_state(self) -> bool:
        """True now and then: time to ask for the run again and pass it to `learn`."""
        now_s = time.monotonic()
        if self.over or now_s - self._asked_s < STATE_EVERY_S:
            return False
        self._asked_s = now_s
        return True

    def learn(self, run: Run) -> None:
        """The run as it is now: its place in the queue, or that it is over."""
        self.run = run
        if run.state == "queued":
            self._announce(frame("state", {
                "state": "queued", "place": run.place, "wait_s": None if run.wait_s is None else round(run.wait_s),
                "recording": run.recording, "recorded_s": run.recorded_s,
            }))
        elif run.state == "starting" and not self._frames:
            self._announce(frame("state", {"state": "starting"}))
        elif run.over and not self._read() and not self.over:
            if run.unwritten_end is not None:
                self._add(self.last_id + 1, "end", run.unwritten_end)
            self.over = True
            self._wake_all()

    def stalled(self) -> list[Viewer]:
        limit_s = time.monotonic() - STALLED_S
        return [viewer for viewer in self.viewers if viewer.sending_since_s is not None and viewer.sending_since_s < limit_s]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _announce(self, notice: bytes) -> None:
        """Something without an id: only the newest matters."""
        if notice != self._notice or notice is HEARTBEAT:
            self._notice = notice
            self._notices += 1
            self._last_s = time.monotonic()
            self._wake_all()

    def _wake_all(self) -> None:
        for viewer in self.viewers:
            viewer.wake()

    def _read(self) -> bool:
        try:
            if self._file is None:
                self._file = (self.run.run_dir / EVENTS).open("rb")
            self._file.seek(self._offset)
            data = self._file.read(READ_BYTES)
        except OSError:
            return False
        data = data[: data.rfind(b"\n") + 1]
        if not data:
            return False
        self._offset += len(data)
        for line in data.splitlines():
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if is_event(event):
                self._add(event["id"], event["event"], event["data"])
        self._last_s = time.monotonic()
        self._wake_all()
        return True

    def _add(self, event_id: int, event: str, data: dict[str, Any]) -> None:
        self._notice = b""
        if self.run.hidden:
            data = _untold(event, data)
        self._frames.append(frame(event, data, event_id))
        self._ids.append(event_id)
        self._bytes += len(self._frames[-1])
        while self._bytes > FRAMES_BYTES and len(self._frames) > KEPT_AT_HEAD + 1:
            self._bytes -= len(self._frames.pop(KEPT_AT_HEAD))
            self._ids.pop(KEPT_AT_HEAD)
            self._dropped += 1
        self.over = self.over or event == "end"


class Hub:
    """All tails of one event loop, polled by one task while anybody watches."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._tails: dict[str, Tail] = {}
        self._finished: OrderedDict[str, Tail] = OrderedDict()
        self._poller: asyncio.Task[None] | None = None
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="tails")
        """Of their own: a database that does not answer holds those that everybody shares."""
        self._listening = False
        self.closing = False
        """The server is about to end: every stream has to."""

    def _close(self) -> None:
        self.closing = True

    def listen(self) -> None:
        """Hear that the server is to end; from the first stream on, for only then has the server put its own handlers in place."""
        if not self._listening:
            self._listening = True
            on_exit_signal(self._close)

    async def open(self, run_id: str) -> Tail | None:
        """The run's tail, with what is on record read in; None for an unknown run."""
        self.listen()
        tail = self._tails.get(run_id) or self._finished.get(run_id)
        if tail is not None:
            return tail
        run = await self._find(run_id)
        if run is None:
            return None
        tail = self._tails.setdefault(run_id, Tail(run))
        tail.poll()
        if not tail.over:
            tail.learn(run)
        while run.over and not tail.over:
            await asyncio.sleep(0)
            tail.learn(run)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.get_running_loop().create_task(self._poll())
        return tail

    async def _find(self, run_id: str) -> Run | None:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(self._runs.get, run_id, hidden=True))

    async def _poll(self) -> None:
        while self._tails:
            for run_id, tail in list(self._tails.items()):
                tail.poll()
                if tail.needs_state():
                    run = await self._find(run_id)
                    if run is not None:
                        tail.learn(run)
                for viewer in tail.viewers if self.closing else tail.stalled():
                    viewer.let_go()
                if tail.idle:
                    self._retire(run_id, tail)
            await asyncio.sleep(POLL_S)

    def _retire(self, run_id: str, tail: Tail) -> None:
        tail.close()
        del self._tails[run_id]
        if tail.over:
            self._finished[run_id] = tail
            while len(self._finished) > FINISHED_KEPT:
                self._finished.popitem(last=False)
