"""`POST /collect/RUN`: the address to which ranks send what they report.

Owns what goes over the wire: the token, the limits on size and number, status codes. What is in a batch belongs to `collector.py`.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from scenarios.cluster.collector import Collector, Reply
from scenarios.runs import Runs

BODY_BYTES = 4 << 20
WAITING = 32
"""Batches taken in at once; a rank that comes then tries again."""
BODY_LIMIT_S = 30.0
REQUESTS_PER_S, BURST = 300.0, 600.0
"""Batches of all ranks together. One rank sends two a second."""
WRONG_TOKENS, WRONG_TOKENS_S = 20, 60.0
"""So many wrong tokens of one client in such a time, and it has to wait."""
CLIENTS_KEPT = 1_000
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def collect_routes(runs: Runs, collector: Collector | None = None) -> list[Route]:
    """The route, also where nothing is collected: then it says so."""
    return [Route("/collect/{run_id}", _Collect(runs, collector or Collector(runs)).post, methods=["POST"])]


class _Collect:
    def __init__(self, runs: Runs, collector: Collector) -> None:
        self._collector = collector
        self._token = _digest(runs.settings.collect_token.encode()) if runs.settings.collect_token else b""
        self._waiting = 0
        self._room, self._room_s = BURST, time.monotonic()
        self._wrong: dict[str, deque[float]] = {}
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="collect")

    async def post(self, request: Request) -> Response:
        if not self._token:
            return _text(404, "This app collects no runs: SHARDLAB_COLLECT_TOKEN is not set.")
        client = request.client.host if request.client else ""
        if self._barred(client):
            return _text(429, "Too many wrong tokens. Please wait a minute.", retry_s=60)
        if not self._allowed(request.headers.get("authorization", "")):
            self._note_wrong(client)
            return _text(401, "The token is missing or wrong. Ranks read it from SHARDLAB_COLLECT_TOKEN.")
        if not self._collector.enabled:
            return _text(503, "Another server collects into this data folder.", retry_s=5)
        if self._waiting >= WAITING or self._too_fast():
            return _text(429, "Many ranks are reporting at once.", retry_s=1)
        self._waiting += 1
        try:
            body = await asyncio.wait_for(_body(request), BODY_LIMIT_S)
            if body is None:
                return _text(413, f"A batch must be at most {BODY_BYTES >> 20} MiB.")
            run_id = request.path_params["run_id"]
            reply = await asyncio.get_running_loop().run_in_executor(self._threads, self._collector.accept, run_id, body)
            return _response(reply)
        except TimeoutError:
            return _text(408, f"The batch did not arrive within {BODY_LIMIT_S:.0f} s.")
        except ClientDisconnect:
            return _text(400, "The batch did not arrive whole.")
        finally:
            self._waiting -= 1

    def _allowed(self, header: str) -> bool:
        """In constant time: hashes of equal length are compared."""
        scheme, _, token = header.partition(" ")
        return hmac.compare_digest(_digest(token.strip().encode()), self._token) and scheme.lower() == "bearer"

    def _too_fast(self) -> bool:
        now_s = time.monotonic()
        self._room = min(BURST, self._room + (now_s - self._room_s) * REQUESTS_PER_S)
        self._room_s = now_s
        if self._room < 1:
            return True
        self._room -= 1
        return False

    def _barred(self, client: str) -> bool:
        times = self._wrong.get(client)
        while times and time.monotonic() - times[0] > WRONG_TOKENS_S:
            times.popleft()
        return bool(times) and len(times or ()) >= WRONG_TOKENS

    def _note_wrong(self, client: str) -> None:
        if len(self._wrong) >= CLIENTS_KEPT:
            self._wrong.clear()
        self._wrong.setdefault(client, deque()).append(time.monotonic())


async def _body(request: Request) -> bytes | None:
    """None where it is too large; no more of it is read then."""
    length = request.headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()) or int(length) > BODY_BYTES:
        return None
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES:
            return None
    return bytes(body)


def _response(reply: Reply) -> Response:
    headers = HEADERS if reply.retry_s is None else {**HEADERS, "Retry-After": str(reply.retry_s)}
    if reply.status in (200, 409):
        return JSONResponse({"next": reply.next, "text": reply.text}, reply.status, headers=headers)
    return PlainTextResponse(reply.text, reply.status, headers=headers)


def _text(status: int, text: str, *, retry_s: int | None = None) -> Response:
    return _response(Reply(status=status, text=text, retry_s=retry_s))


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
