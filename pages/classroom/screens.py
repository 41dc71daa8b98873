"""What the viewers of one class are sent: per role one view and one run, made into bytes once and shared by all.

    event: class   a view, at the start and with every change; only `me` of the audience differs from viewer to viewer
    event: shown   another run is on the screens (or the same one again: `showing` counts); what follows belongs to it
    event: head, state, tick, strip, lane, end   of that run, with ids "version.showing.number" by which a viewer resumes
    event: beat    nothing happened for a while, and the line is alive

A viewer holds no queue, only where it is: a slow one costs nothing and slows nobody (`scenarios.tail`). Owns the bytes. Lives in one event
loop, without locks; must not ask the store or a run.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Literal

from scenarios.tail import STALLED_S, Tail, Viewer, frame

Role = Literal["audience", "projector", "console"]
Key = tuple[str, int]
"""A run's id, and which showing of it this is."""
UNCOMPARED: dict[Role, frozenset[str]] = {
    # The audience acts on nothing that only the version tells.
    "audience": frozenset({"server_s", "version"}), "projector": frozenset({"server_s"}), "console": frozenset({"server_s"}),
}
BEAT = frame("beat", {})
CHUNKS_KEPT = 8


class ClassViewer(Viewer):
    """One open response of a class."""

    __slots__ = ("beats", "me", "person", "removed", "seen", "showing", "since_s", "token", "version")

    def __init__(self, *, token: str = "", person: int = 0, me: bytes = b"", version: int = 0) -> None:
        super().__init__(0)
        self.token = token
        """Of a participant, or the cookie of an instructor; empty for a projector."""
        self.person = person
        self.me = me
        self.version = version
        """Of the class, before `me` was looked up."""
        self.removed = False
        """The instructor has sent them away."""
        self.seen = 0
        self.showing: Showing | None = None
        self.beats = 0
        self.since_s = time.monotonic()


class Showing:
    """A run on the screens, as all of them are sent it."""

    def __init__(self, key: Key, tail: Tail | None, version: int) -> None:
        self.key = key
        self.tail = tail
        self.frame = frame("shown", {"run_id": key[0], "showing": key[1]})
        self.id = f"{key[0]}-{key[1]}"
        self._prefix = f"id: {version}.{self.id}.".encode()
        self._chunks: OrderedDict[tuple[int, int], bytes] = OrderedDict()

    def take(self, viewer: ClassViewer) -> bytes:
        """Everything of the run that `viewer` has not been given yet, under the ids of this showing."""
        if self.tail is None:
            return b""
        before = viewer.position
        chunk = self.tail.take(viewer)
        if viewer.position == before:
            if self.tail.over:
                self.tail.viewers.discard(viewer)  # nothing follows: the run's tail may close
            return chunk  # a notice without an id, or nothing
        span = (before, viewer.position)
        if span not in self._chunks:
            # A frame begins with its id, and holds no empty line: those of a viewer in step with the others are rewritten once.
            self._chunks[span] = (b"\n\n" + chunk).replace(b"\n\nid: ", b"\n\n" + self._prefix)[2:]
            while len(self._chunks) > CHUNKS_KEPT:
                self._chunks.popitem(last=False)
        return self._chunks[span]

    def resume(self, viewer: ClassViewer, last_event_id: str) -> None:
        """Go on where the viewer has lost the line, if it was at this showing."""
        parts = last_event_id.split(".")
        if self.tail is None or len(parts) != 3 or parts[1] != self.id or not (parts[2].isascii() and parts[2].isdigit()):
            return
        self.enter(viewer)
        viewer.position = self.tail.position_after(int(parts[2][:12]))

    def enter(self, viewer: ClassViewer) -> None:
        """From here on `viewer` is sent this run, from its beginning."""
        if viewer.showing is not None and viewer.showing.tail is not None:
            viewer.showing.tail.viewers.discard(viewer)
        viewer.showing, viewer.position, viewer.notice = self, 0, 0
        if self.tail is not None:
            self.tail.viewers.add(viewer)


class Screen:
    """All viewers of one role of a class: a `Source` of streams."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self.over = False
        self.viewers: set[ClassViewer] = set()
        self.showing: Showing | None = None
        self._view: dict[str, Any] = {}
        self._body = b""
        self._number = 0
        self._beats = 0
        self._last_s = time.monotonic()

    def tell(self, view: Mapping[str, Any], showing: Showing | None) -> None:
        """The view as it is now, and the run on show."""
        compared = {name: value for name, value in view.items() if name not in UNCOMPARED[self.role]}
        if compared == self._view and showing is self.showing:
            return
        if compared != self._view:
            self._view = compared
            self._body = json.dumps(view, separators=(",", ":")).encode()
            self._number += 1
        self.showing = showing
        self.wake()

    def beat(self, every_s: float) -> None:
        """Where nothing was said for so long, say that the line is alive."""
        if time.monotonic() - self._last_s >= every_s:
            self._beats += 1
            self.wake()

    def wake(self) -> None:
        self._last_s = time.monotonic()
        for viewer in self.viewers:
            viewer.wake()

    def take(self, viewer: ClassViewer) -> bytes:
        """Everything `viewer` has not been given yet: the view, then which run, then what is new of it."""
        parts = []
        if viewer.seen != self._number:
            viewer.seen = self._number
            parts.append(self._frame(viewer))
        if viewer.showing is not self.showing:
            parts.append(self._switch(viewer))
        if self.showing is not None:
            parts.append(self.showing.take(viewer))
        if viewer.beats != self._beats:
            viewer.beats = self._beats
            if not any(parts):
                return BEAT
        return b"".join(parts)

    def leave(self, viewer: ClassViewer) -> None:
        self.viewers.discard(viewer)
        if viewer.showing is not None and viewer.showing.tail is not None:
            viewer.showing.tail.viewers.discard(viewer)

    def stalled(self) -> list[ClassViewer]:
        limit_s = time.monotonic() - STALLED_S
        return [viewer for viewer in self.viewers if viewer.sending_since_s is not None and viewer.sending_since_s < limit_s]

    def _frame(self, viewer: ClassViewer) -> bytes:
        if not viewer.me:
            return b"event: class\ndata: " + self._body + b"\n\n"
        return b"event: class\ndata: " + self._body[:-1] + b',"me":' + viewer.me + b"}\n\n"

    def _switch(self, viewer: ClassViewer) -> bytes:
        if self.showing is not None:
            self.showing.enter(viewer)
            return self.showing.frame
        if viewer.showing is not None and viewer.showing.tail is not None:
            viewer.showing.tail.viewers.discard(viewer)
        viewer.showing = None
        return frame("shown", {"run_id": None, "showing": 0})
