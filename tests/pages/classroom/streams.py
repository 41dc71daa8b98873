"""The routes of a class on a real socket, and readers of its stream: an in-process client cannot follow a response that never ends."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette


@contextmanager
def serving(app: Starlette, host: str = "127.0.0.1") -> Iterator[str]:
    """Serves `app`; gives its address."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    listening = socket.create_server((host, 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://{host}:{listening.getsockname()[1]}"
    server.should_exit = server.force_exit = True
    thread.join(10)


@dataclass(frozen=True)
class Event:
    name: str
    id: str
    data: Any


class Follower:
    """Reads /live?class=CODE until it is closed."""

    def __init__(self, client: httpx.Client, code: str, role: str = "", last_id: str = "", in_address: bool = False) -> None:
        """`last_id` is what was seen last, told as a browser does that comes back by itself, or in the address."""
        self.seen: list[Event] = []
        self.text = ""
        self._events: queue.Queue[Event] = queue.Queue()
        self._request = client.stream(
            "GET", "/live", timeout=60,
            params={"class": code, **({"as": role} if role else {}), **({"last": last_id} if in_address else {})},
            headers={"last-event-id": last_id} if last_id and not in_address else {},
        )
        self.response = self._request.__enter__()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        left = ""
        try:
            for piece in self.response.iter_text():
                self.text += piece
                *whole, left = (left + piece).split("\n\n")
                for block in whole:
                    fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
                    if "data" in fields:
                        event = Event(fields.get("event", ""), fields.get("id", ""), json.loads(fields["data"]))
                        self.seen.append(event)
                        self._events.put(event)
        except (httpx.HTTPError, httpx.StreamError):
            pass
        self._events.put(Event("closed", "", None))

    def until(self, name: str, limit_s: float = 20.0, **fields: Any) -> Any:
        """The data of the next event of this name whose data has these fields; what comes before it is passed over."""
        deadline = time.monotonic() + limit_s
        while True:
            event = self._events.get(timeout=max(0.01, deadline - time.monotonic()))
            if event.name == name and all(event.data.get(key) == value for key, value in fields.items()):
                return event.data
            if event.name == "closed":
                raise AssertionError(f"the stream ended before {name}")

    def ended(self, limit_s: float = 20.0) -> bool:
        self._thread.join(limit_s)
        return not self._thread.is_alive()

    def close(self) -> None:
        """As a phone leaves: the reader, which waits for more, is woken by the end of its connection."""
        with contextlib.suppress(OSError):
            self.response.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self.response.close()
