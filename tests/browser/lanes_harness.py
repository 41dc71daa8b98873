"""A page with nothing but the live picture, and a feed that plays scripted events: every state can be had at will.

Owns the scripted events (the shapes of a run's record) and the little server. Must not import anything of a real run.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from pages.components.lanes.source import lanes_script, style
from tests.browser.server import free_port

Event = tuple[str, dict[str, Any]]

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>The live picture</title><link rel="icon" href="data:,"><link rel="stylesheet" href="lanes.css"><style>
:root { color-scheme: light dark; background: #FBFAF7; color: #1B1F27; font: 17px/1.4 "Source Sans", "Liberation Sans", sans-serif; }
@media (prefers-color-scheme: dark) { :root { background: #12161D; color: #E8EBF0; } }
body { margin: 0; padding: 16px; background: inherit; } #root { max-width: 690px; margin: 0 0 0 auto; }
.more { height: 1600px; } </style></head><body><main><h1 style="font-size:20px;margin:0 0 8px">Cause</h1><div id="root"></div>
<p class="more">More text.</p></main><script type="module">
import { mountLanes } from "./lanes.js";
window.actions = [];
window.mount = (options) => {
  window.lanes?.destroy();
  window.lanes = mountLanes(document.getElementById("root"), { onAction: (action) => window.actions.push(action), ...options });
};
window.ready = true;
</script></body></html>"""


def head(**changes: Any) -> Event:
    return (
        "head",
        {
            "gpus": 8, "processes": 8, "gpu": "A100-80GB", "memory_limit_gib": 79.15, "power_limit_w": 400.0, "source": "virtual",
            "period_ms": 200, "steps_per_epoch": 25, "recorded_s": 1796169600.0,
        }
        | changes,
    )  # fmt: skip


def tick(number: int, **changes: Any) -> Event:
    """Sample `number` of a run in which GPU 0 does most of the work."""
    t_ms = 200 * number
    pulse = 54.0 if number % 3 == 0 else 0.0
    rest = [max(0.0, pulse - 2.0 * rank) for rank in range(7)]
    return (
        "tick",
        {
            "t_ms": t_ms, "step": number // 2, "epoch": 0, "epoch_pct": min(100.0, number * 2.0),
            "util": [98.0 - number % 5, *rest], "useful": [66.0, *(value * 0.8 for value in rest)],
            "spin": [0.0, *(value * 0.15 for value in rest)], "mem": [13.25] * 8, "power": [280.0, *(60.0 + value * 2 for value in rest)],
            "lr": [0.1] * 8, "apart": [0.0] * 8,
        }
        | changes,
    )  # fmt: skip


def strip(t1_ms: int, *more: list[Any]) -> Event:
    """Two steps in which GPU 0 loads and decodes for all, and what else there is."""
    spans: list[list[Any]] = []
    for step in range(2):
        t0 = step * 450_000
        spans += [[0, "host", "load", t0, t0 + 90_000], [0, "compute", "decode", t0 + 90_000, t0 + 290_000]]
        for rank in range(8):
            begin = t0 + 300_000 + rank * 6_000
            if rank:
                spans.append([rank, "host", "wait", t0, begin - 8_000])
            spans += [
                [rank, "copy", "copy", begin - 8_000, begin], [rank, "compute", "forward", begin, begin + 30_000],
                [rank, "comm", "spin", begin + 30_000, t0 + 372_000], [rank, "compute", "backward", begin + 30_000, begin + 80_000],
                [rank, "comm", "all_reduce", t0 + 386_000, t0 + 392_000], [rank, "compute", "optimizer", t0 + 425_000, t0 + 428_000],
            ]  # fmt: skip
    spans += more
    start = (t1_ms - 900) * 1000
    return ("strip", {"t0_us": start, "t1_us": start + 900_000, "spans": [[*span[:3], span[3] + start, span[4] + start] for span in spans]})


def summary(**changes: Any) -> dict[str, Any]:
    gpus = [
        {"rank": rank, "gpu_util": 27.0 if rank else 89.0, "sm_active": 21.0, "spin_pct": 3.0, "memory_gib": 13.25, "power_w": 130.0,
         "peak_memory_gib": 79.0}
        for rank in range(8)
    ]  # fmt: skip
    return {
        "gpus": gpus, "samples_per_second": 4816.0, "unique_samples_per_second": 4816.0, "unique_fraction": 1.0, "times_trained": 1.0,
        "steps_per_epoch": 25, "epoch_seconds": 10.769, "epoch_measured": True, "epochs_seen": 1.12, "speedup_vs_one_gpu": 2.19,
        "last_batch_that_fitted": 1024, "peak_memory_gib": 79.04, "memory_limit_gib": 79.15, "steps": 28, "virtual_s": 12.0,
    } | changes  # fmt: skip


def end(outcome: str, t_ms: int, **changes: Any) -> Event:
    known = outcome in ("finished", "out_of_memory")
    sentence = "GPU 0 is busy 89 % of the time; the other 7 wait for 76 % of it." if known else ""
    data = {"outcome": outcome, "expected": known, "t_ms": t_ms, "sentence": sentence, "rank": None, "error": None}
    return ("end", data | {"summary": summary() if known else None} | changes)


def run_of(ticks: int, *, first: int = 1, **changes: Any) -> list[Event]:
    """The events of a run from its head to tick number `ticks`, with a strip every four seconds."""
    events = [("state", {"state": "starting"}), head(), ("state", {"state": "running"})] if first == 1 else []
    for number in range(first, ticks + 1):
        events.append(tick(number, **changes))
        if number % 20 == 5:
            events.append(strip(200 * number))
    return events


class LanesServer:
    """Serves the page at `url`; `play[run]` is a run's events, and `pace_s` their distance. A run unknown here is a 404."""

    def __init__(self) -> None:
        self.play: dict[str, list[Event]] = {}
        self.pace_s: dict[str, float] = {}
        self.drop_after: dict[str, int] = {}
        """End the connection after this event id; used up by the first viewer."""
        self.hold: set[str] = set()
        """Runs whose feed stays open after the last event."""
        self.opened: list[str] = []
        self.open_now = 0
        self.url = ""

    def set(self, run: str, events: list[Event], *, pace_s: float = 0.0, hold: bool = False) -> str:
        self.play[run], self.pace_s[run] = events, pace_s
        if hold:
            self.hold.add(run)
        return run

    def app(self) -> Starlette:
        text: Callable[[str, str], Callable[[Request], Response]] = lambda body, kind: lambda _: Response(body, media_type=kind)  # noqa: E731
        return Starlette(
            routes=[
                Route("/", lambda _: HTMLResponse(PAGE)),
                Route("/lanes.js", text(lanes_script(), "text/javascript")),
                Route("/lanes.css", text(style(), "text/css")),
                Route("/live", self.live),
            ]
        )

    async def live(self, request: Request) -> Response:
        run = request.query_params["run"]
        self.opened.append(run)
        if run not in self.play:
            return PlainTextResponse("unknown", 404)
        return StreamingResponse(self.stream(run, request), media_type="text/event-stream")

    async def stream(self, run: str, request: Request) -> AsyncIterator[str]:
        self.open_now += 1
        try:
            drop = self.drop_after.pop(run, None)
            for number, (name, data) in enumerate(list(self.play[run]), 1):
                await asyncio.sleep(self.pace_s[run])
                numbered = f"id: {number}\n" if data.get("state") != "queued" else ""
                yield f"{numbered}event: {name}\ndata: {json.dumps(data)}\n\n"
                if number == drop:
                    return
            while run in self.hold and not await request.is_disconnected():
                await asyncio.sleep(0.05)
        finally:
            self.open_now -= 1


@contextmanager
def lanes_server() -> Iterator[LanesServer]:
    """The server in a thread of its own, on a free loopback port."""
    server = LanesServer()
    port = free_port()
    runner = uvicorn.Server(uvicorn.Config(server.app(), host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=runner.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 10
    while not runner.started and time.monotonic() < deadline:
        time.sleep(0.02)
    server.url = f"http://127.0.0.1:{port}"
    try:
        yield server
    finally:
        runner.should_exit = True
        thread.join(5)
