"""A class that is only its HTTP side: what a simulated participant meets, said by a test. Owns no rules of a class."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

CODE = "AB23CD"
OPTIONS = ("t1", "t2", "t3", "t4")


def voting(item_no: int, round: str) -> dict[str, Any]:  # the word of the room
    item = {"no": item_no, "options": [{"id": option, "letter": "A", "text": ""} for option in OPTIONS]}
    choices = [{"id": picture, "words": ""} for picture in ("only0", "all_high")]
    return {"state": "vote", "round": round, "may_vote": True, "item": item, "predict": {"choices": choices}}


@dataclass
class MadeClass:
    """Says `view` to everybody who follows; notes who joined and what they voted."""

    view: dict[str, Any] = field(default_factory=lambda: {"state": "lobby", "item": None, "round": None})
    nicknames: list[str] = field(default_factory=list)
    votes: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """(cookie, round) -> choices in their order."""
    answers: list[int] = field(default_factory=list)
    """Statuses of the next votes; 200 after that."""
    joining: int = 200
    signs: Counter[str] = field(default_factory=Counter)
    open_streams: int = 0
    ticks: int = 0
    url: str = ""

    def say(self, view: dict[str, Any]) -> None:
        self.view = view

    async def join(self, request: Request) -> Response:
        if self.joining != 200:
            return JSONResponse({"reason": "no", "words": "no"}, status_code=self.joining)
        self.nicknames.append((await request.json())["nickname"])
        answer = JSONResponse(self.view)
        answer.set_cookie("shardlab_participant", f"p{len(self.nicknames)}", httponly=True)
        return answer

    async def vote(self, request: Request) -> Response:
        status = self.answers.pop(0) if self.answers else 200
        if status == 200:
            asked = await request.json()
            self.votes.setdefault((request.cookies["shardlab_participant"], asked["round"]), []).append(asked["choice"])
        return JSONResponse({"recorded": status == 200, "reason": "as the test says"}, status_code=status)

    async def here(self, request: Request) -> Response:
        self.signs[request.cookies["shardlab_participant"]] += 1
        return Response(status_code=204)

    async def live(self, request: Request) -> Response:
        assert request.query_params["class"] == CODE
        assert request.cookies["shardlab_participant"]
        return StreamingResponse(self._events(), media_type="text/event-stream")

    async def _events(self) -> AsyncIterator[str]:
        self.open_streams += 1
        said: dict[str, Any] = {}
        try:
            yield "retry: 100\n\n: a comment\n\n"
            for _ in range(self.ticks):
                yield "id: 1.1.1\nevent: tick\ndata: {}\n\n"
            while True:
                if self.view != said:
                    said = self.view
                    yield f"id: 1.0.0\nevent: class\ndata: {json.dumps(said)}\n\n"
                await asyncio.sleep(0.01)
        finally:
            self.open_streams -= 1


@contextlib.contextmanager
def served(made: MadeClass) -> Iterator[MadeClass]:
    app = Starlette(routes=[
        Route(f"/lab/c/{CODE}/join", made.join, methods=["POST"]), Route(f"/lab/c/{CODE}/vote", made.vote, methods=["POST"]),
        Route(f"/lab/c/{CODE}/here", made.here, methods=["POST"]), Route("/lab/live", made.live),
    ])  # fmt: skip
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    made.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/lab"
    try:
        yield made
    finally:
        server.should_exit = True
        thread.join(10)


def wait_until(true: Any, limit_s: float = 20.0) -> None:
    deadline = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
