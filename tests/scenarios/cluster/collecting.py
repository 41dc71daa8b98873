"""An app that collects, on a real socket, without Streamlit: it may end and start again on the same port and data folder."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from scenarios.cluster.collect_route import collect_routes
from scenarios.cluster.collector import Collector
from scenarios.feed import live_routes
from scenarios.runs import Runs
from scenarios.settings import Settings

TOKEN = "a-token-of-the-tests"
LAUNCHER = (sys.executable, "-c", "import sys; print('{\"ready\": true}', flush=True); sys.stdin.read()")
"""A launcher that is never asked to start anything."""


@dataclass(frozen=True, kw_only=True)
class App:
    runs: Runs
    collector: Collector
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def collecting_app(data_dir: Path, *, port: int = 0, token: str = TOKEN, gather_s: float = 0.4, silence_s: float = 60.0) -> Iterator[App]:
    """`gather_s` is short: the tests' ranks are on this machine."""
    runs = Runs(Settings(data_dir=data_dir, live_runs=1, collect_token=token), launcher_command=LAUNCHER)
    collector = Collector(runs, gather_s=gather_s, silence_s=silence_s)
    routes = [*live_routes(runs), *collect_routes(runs, collector)]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="critical", lifespan="off"))
    listening = socket.create_server(("127.0.0.1", port), reuse_port=False)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield App(runs=runs, collector=collector, port=int(listening.getsockname()[1]))
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)
        listening.close()
        collector.close()
        runs.close()
