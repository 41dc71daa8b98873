"""The HTTP side of runs: the live feed as server-sent events, exports and the health check, as Starlette routes.

Owns what goes over the wire: status codes, headers, limits on viewers. Tails belong to `tail.py`, runs to `runs.py`. No streamlit.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from scenarios.analysis.trace import trace_lines
from scenarios.record import csv_lines
from scenarios.run_folder import RUN_ID
from scenarios.runs import Run, Runs
from scenarios.tail import Hub, Viewer

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
STREAM_HEADERS = {**HEADERS, "Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}
"""X-Accel-Buffering: nginx would hold events back."""

RETRY_MS = 2_000
CHUNK_BYTES = 65_536
FILES_WANTED = 65_536

AnyViewer = TypeVar("AnyViewer", bound=Viewer, contravariant=True)


def live_routes(
    runs: Runs, *, health: Callable[[], dict[str, Any]] | None = None, by_class: Callable[[Hub], ASGIApp] | None = None
) -> list[Route]:
    """Routes of everything a run shows without Streamlit: /healthz, /live, /runs/ID/trace.json, /runs/ID/samples.csv.

    `health` says what /healthz answers, where the server knows of more than its runs. `by_class` makes what answers /live?class=CODE.
    """
    _raise_file_limit()
    exports = _Exports(runs)

    async def healthz(request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(health or runs.health), headers=HEADERS)

    return [
        Route("/healthz", healthz, methods=["GET"]),
        Route("/live", LiveFeed(runs, by_class), methods=["GET"]),
        Route("/runs/{run_id}/trace.json", exports.trace, methods=["GET"]),
        Route("/runs/{run_id}/samples.csv", exports.samples, methods=["GET"]),
    ]


class LiveFeed:
    """`GET /live?run=ID`: the backlog at once, then events as they come, then the end of the stream. An ASGI app.

    A plain one rather than a response class: with 1,000 viewers each layer between the tail and the socket counts.
    """

    def __init__(self, runs: Runs, by_class: Callable[[Hub], ASGIApp] | None = None) -> None:
        self._hub = Hub(runs)
        self._by_class = by_class(self._hub) if by_class else None
        self._total_limit = runs.settings.viewers_limit
        self._client_limit = runs.settings.viewers_per_client_limit
        self._clients: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        client = request.client.host if request.client else ""
        refusal = self._refusal(client)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        self._clients[client] += 1
        try:
            if self._by_class is not None and "class" in request.query_params:
                await self._by_class(scope, receive, send)
            else:
                await self._by_run(request, receive, send)
        finally:
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]

    async def _by_run(self, request: Request, receive: Receive, send: Send) -> None:
        scope, run_id = request.scope, request.query_params.get("run", "")
        if not run_id:
            await _text(400, "Which run? Ask for /live?run=ID.")(scope, receive, send)
            return
        tail = await self._hub.open(run_id) if RUN_ID.fullmatch(run_id) else None
        if tail is None:
            await _text(404, "There is no such run. It may have been removed to make room.")(scope, receive, send)
            return
        seen = _event_id(request.headers.get("last-event-id", ""))
        if tail.over and seen and seen >= tail.last_id:
            await Response(status_code=204, headers=HEADERS)(scope, receive, send)  # tells EventSource not to come back
            return
        viewer = Viewer(tail.position_after(seen))
        tail.viewers.add(viewer)
        try:
            await stream(tail, viewer, scope, receive, send)
        finally:
            tail.viewers.discard(viewer)

    def _refusal(self, client: str) -> Response | None:
        if self._hub.closing:
            return _text(503, "The server is being stopped.", retry_s=5)
        if self._clients.total() >= self._total_limit:
            return _text(503, f"{self._total_limit} viewers are connected already. Please try again in a minute.", retry_s=60)
        if self._clients[client] >= self._client_limit:
            return _text(503, f"{self._client_limit} viewers are connected from your network. Please try again in a minute.", retry_s=60)
        return None


class Source(Protocol[AnyViewer]):
    """What a stream is fed from. It wakes the viewers it has something for."""

    over: bool
    """Nothing follows what `take` has still to give."""

    def take(self, viewer: AnyViewer) -> bytes:
        """Everything `viewer` has not been given yet."""


async def stream(source: Source[AnyViewer], viewer: AnyViewer, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with what `source` has for `viewer`, as server-sent events, until it is over or the viewer has left."""
    headers = [(name.lower().encode(), value.encode()) for name, value in STREAM_HEADERS.items()]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if scope["method"] == "HEAD":
        await send({"type": "http.response.body", "body": b""})
        return
    viewer.task = asyncio.current_task()
    watcher = asyncio.create_task(_watch_for_leaving(receive, viewer))
    try:
        await send({"type": "http.response.body", "body": b"retry: %d\n\n" % RETRY_MS, "more_body": True})
        while not viewer.gone:
            chunk = source.take(viewer)
            if chunk:
                viewer.sending_since_s = time.monotonic()
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                viewer.sending_since_s = None
            elif source.over:
                break
            else:
                await viewer.wait()
        await send({"type": "http.response.body", "body": b""})
    except asyncio.CancelledError:
        if not viewer.gone:  # not ours: the server is closing
            raise
    finally:
        watcher.cancel()


async def _watch_for_leaving(receive: Receive, viewer: Viewer) -> None:
    """A server's `send` says nothing when the client has left; `receive` does."""
    while (await receive())["type"] != "http.disconnect":
        pass
    viewer.gone = True
    viewer.wake()


class _Exports:
    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    async def trace(self, request: Request) -> Response:
        """The Chrome trace, streamed: a long run's spans never lie in memory."""
        run = await self._run(request)
        if run is None:
            return _text(404, "There is no such run.")
        if run.hidden:  # its spans carry the names of what the script does
            return _text(403, "What runs here is to be found out; its trace can be had afterwards.")
        return _download(trace_lines(run.run_dir), f"trace-{run.run_id}.json", "application/json")

    async def samples(self, request: Request) -> Response:
        run = await self._run(request)
        if run is None:
            return _text(404, "There is no such run.")
        return _download(csv_lines(run.run_dir), f"samples-{run.run_id}.csv", "text/csv; charset=utf-8")

    async def _run(self, request: Request) -> Run | None:
        return await asyncio.to_thread(self._runs.get, request.path_params["run_id"], hidden=True)


def _download(lines: Iterator[str], name: str, media_type: str) -> Response:
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_chunks(lines), media_type=media_type, headers=headers)


def _chunks(lines: Iterator[str]) -> Iterator[bytes]:
    part: list[str] = []
    size = 0
    for line in lines:
        part.append(line)
        size += len(line)
        if size >= CHUNK_BYTES:
            yield "".join(part).encode()
            part, size = [], 0
    yield "".join(part).encode()


def _text(status: int, text: str, *, retry_s: int | None = None) -> Response:
    return PlainTextResponse(text, status, headers=HEADERS if retry_s is None else {**HEADERS, "Retry-After": str(retry_s)})


def _event_id(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0


def _raise_file_limit() -> None:
    """Each viewer is a file descriptor; many systems allow a process 1,024 unless it asks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
