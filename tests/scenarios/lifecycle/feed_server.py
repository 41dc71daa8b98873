"""The feed's routes on a real socket, in a thread of the test: streams, disconnects and slow readers need one."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from scenarios.feed import live_routes
from scenarios.runs import Runs

EVENT = re.compile(r"(?:id: (\d+)\n)?event: (\w+)\ndata: (.*)\n\n")


@contextmanager
def feed_server(runs: Runs) -> Iterator[int]:
    """Serves `live_routes(runs)`; gives the port."""
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=list(live_routes(runs))), port=0, log_level="critical", lifespan="off"))
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield int(listening.getsockname()[1])
    server.should_exit = server.force_exit = True
    thread.join(10)


def events_in(text: str) -> list[tuple[int | None, str, str]]:
    """(id, event, data) of every whole event in a stream's text."""
    return [(int(number) if number else None, event, data) for number, event, data in EVENT.findall(text)]
