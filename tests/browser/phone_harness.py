"""A class for the audience's page without a classroom behind it: every state and every fault can be had at will.

Owns the scripted views (the shapes of `lessons.classroom.views`) and the little server. Must not import anything of a real class.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from lessons import load_lessons
from lessons.model import SILHOUETTES, Lesson
from pages.classroom.phone.source import phone_assets, phone_page
from pages.components.lanes.source import lanes_script, style
from tests.browser.lanes_harness import Event
from tests.browser.server import free_port

CODE = "K7RP4W"
COOKIE = "shardlab_participant"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'"
)
ROUNDS = {"vote": "first", "revote": "second", "predict": "predict"}
AFTER = ("predict", "experiments", "key", "explanation")


class Room:
    """One class. Set its fields and call `tell`; what phones did is in `joins`, `votes` (recorded) and `asked` (every vote that came)."""

    def __init__(self, lesson: str = "one-busy-gpu") -> None:
        found = load_lessons().get(lesson)
        assert found is not None
        self.lesson: Lesson = found
        self.version = 1
        self.state = "lobby"
        self.item_no = 1
        self.closes_s: float | None = None
        self.open = True
        self.run: dict[str, Any] | None = None
        self.events: list[Event] = []
        self.race: list[dict[str, Any]] | None = None
        self.counts: dict[str, dict[str, int]] = {"first": {}, "second": {}, "predict": {}}
        self.people: dict[str, str | None] = {}
        self.removed: set[str] = set()
        self.votes: dict[tuple[str, int, str], str] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.joins = 0
        self.streams = 0
        self.views = 0
        self.signs = 0
        self.vote_answers: list[int] = []
        """Statuses for the next votes, in place of recording them: 503, or 0 for recording it and letting the answer get lost."""
        self.join_answers: list[tuple[int, dict[str, Any]]] = []
        self.mute = False
        """Streams begin and say nothing, as behind a proxy that holds them back."""

    def go(self, state: str, **fields: Any) -> None:
        """The next state, told to all."""
        self.state, self.open = state, True
        for name, value in fields.items():
            setattr(self, name, value)
        self.tell()

    def tell(self) -> None:
        self.version += 1

    def view(self, token: str) -> dict[str, Any]:
        """What `audience_view` gives."""
        state, lesson = self.state, self.lesson
        inside = state not in ("lobby", "ended")
        shown = state in ("votes", "discuss", *AFTER)
        first, second, predicted = (self._counted(name) for name in ("first", "second", "predict"))
        letters = zip("ABCD", lesson.options, strict=True)
        return {
            "role": "audience", "version": self.version, "code": CODE, "title": "Night shift on the cluster", "state": state,
            "server_s": time.time(), "closes_s": self.closes_s,
            "item": {
                "no": self.item_no, "of": 3, "title": lesson.title, "level": lesson.level, "symptom_html": lesson.symptom.html,
                "question": lesson.question, "still": lesson.still,
                "options": [{"id": option.id, "letter": letter, "text": option.text} for letter, option in letters],
            } if inside else None,
            "round": ROUNDS.get(state), "may_vote": state in ROUNDS and self.open,
            "votes": {"first": first, "second": second if second["total"] else None} if shown else None,
            "predictions": predicted if state in AFTER[1:] else None,
            "predict": {
                "cause_title": lesson.causes[0].title, "choices": [{"id": name, "words": words} for name, words in SILHOUETTES.items()],
            } if state == "predict" else None,
            "run": self.run if state in AFTER[1:] else None, "race": self.race if state == "experiments" else None,
            "key": {
                "option_id": lesson.key.id,
                "rebuttals": [{"option_id": option.id, "html": option.rebuttal.html} for option in lesson.options],
            } if state in ("key", "explanation") else None,
            "explanation": {
                "why_html": lesson.why.html, "infographic_svg": lesson.infographic, "infographic_alt": lesson.infographic_alt,
                "exam_html": lesson.exam_box.html, "on_call_html": lesson.on_call_box.html,
            } if state == "explanation" else None,
            "me": {
                "nickname": self.people[token],
                "votes": {name: self.votes.get((token, self.item_no, name)) for name in ("first", "second", "predict")},
            },
        }  # fmt: skip

    def _counted(self, name: str) -> dict[str, Any]:
        counts = dict(self.counts[name])
        for (_, item_no, of_round), choice in self.votes.items():
            if item_no == self.item_no and of_round == name:
                counts[choice] = counts.get(choice, 0) + 1
        return {"total": sum(counts.values()), "counts": counts}


class PhoneServer:
    """Serves a `room` at `url`; `stop` and `start` on the same port are a restart."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._runner: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        return f"{self.url}/c/{CODE}"

    def app(self) -> Starlette:
        files = {**phone_assets(), "lanes.js": lanes_script(), "lanes.css": style()}

        def asset(request: Request) -> Response:
            name = request.path_params["name"]
            return Response(files[name], media_type="text/css" if name.endswith("css") else "text/javascript")

        def page(request: Request) -> Response:
            unknown = request.path_params.get("code", CODE) != CODE
            body = phone_page(lambda name: f"/class-assets/{name}", unknown=unknown)
            return HTMLResponse(body, 404 if unknown else 200, headers={"Content-Security-Policy": POLICY})

        routes = [
            Route("/c", page), Route("/c/{code}", page), Route("/class-assets/{name}", asset), Route("/live", self.live),
            Route("/c/{code}/here", self.here, methods=["POST"]), Route("/c/{code}/view", self.view),
            Route("/c/{code}/join", self.join, methods=["POST"]),
            Route("/c/{code}/vote", self.vote, methods=["POST"]), Route("/course", lambda _: HTMLResponse("The course")),
        ]  # fmt: skip
        return Starlette(routes=[*routes, Mount("/behind/a/proxy", routes=routes)])

    def _refusal(self, request: Request) -> Response | None:
        token = request.cookies.get(COOKIE, "")
        if token in self.room.removed:
            return JSONResponse({"reason": "removed"}, 403)
        return None if token in self.room.people else JSONResponse({"reason": "join"}, 403)

    def here(self, request: Request) -> Response:
        self.room.signs += 1
        return Response(status_code=204)

    def view(self, request: Request) -> Response:
        self.room.views += 1
        return self._refusal(request) or JSONResponse(self.room.view(request.cookies[COOKIE]))

    async def join(self, request: Request) -> Response:
        self.room.joins += 1
        if self.room.join_answers:
            status, data = self.room.join_answers.pop(0)
            return JSONResponse(data, status, headers={"Retry-After": "1"})
        token = request.cookies.get(COOKIE) or f"token{self.room.joins}"
        if token in self.room.removed:
            return JSONResponse({"reason": "removed"}, 403)
        self.room.people[token] = (await request.json()).get("nickname")
        answer = JSONResponse(self.room.view(token))
        answer.set_cookie(COOKIE, token, httponly=True, samesite="lax")
        return answer

    async def vote(self, request: Request) -> Response:
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        body, room, token = await request.json(), self.room, request.cookies[COOKIE]
        room.asked.append((token, body["round"], body["choice"]))
        fault = room.vote_answers.pop(0) if room.vote_answers else 200
        if fault == 503:
            return JSONResponse({"reason": "store"}, 503, headers={"Retry-After": "1"})
        if body["round"] != ROUNDS.get(room.state) or body["item_no"] != room.item_no or not room.open:
            return JSONResponse({"reason": "closed"}, 409)
        room.votes[token, body["item_no"], body["round"]] = body["choice"]
        if not fault:
            return JSONResponse({"reason": "lost"}, 502)
        return JSONResponse({"recorded": True, "version": room.version})

    def live(self, request: Request) -> Response:
        refusal = self._refusal(request)
        return refusal or StreamingResponse(self._stream(request.cookies[COOKIE]), media_type="text/event-stream")

    async def _stream(self, token: str) -> AsyncIterator[str]:
        room = self.room
        room.streams += 1
        version, run, sent = -1, None, 0
        yield "retry: 2000\n\n"
        while token not in room.removed and not (self._runner and self._runner.should_exit):
            if room.mute:
                await asyncio.sleep(0.02)
                continue
            if room.version != version:
                version = room.version
                yield f"id: {version}.0.0\nevent: class\ndata: {json.dumps(room.view(token))}\n\n"
            shown = room.run["run_id"] if room.run else None
            if shown != run:
                run, sent = shown, 0
                yield f"event: shown\ndata: {json.dumps({'run_id': run})}\n\n"
            while run and sent < len(room.events):
                name, data = room.events[sent]
                sent += 1
                yield f"id: {version}.1.{sent}\nevent: {name}\ndata: {json.dumps(data)}\n\n"
            await asyncio.sleep(0.02)

    def start(self) -> None:
        config = uvicorn.Config(self.app(), host="127.0.0.1", port=self.port, log_level="warning", timeout_graceful_shutdown=1)
        self._runner = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._runner.run, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + 10
        while not self._runner.started and time.monotonic() < deadline:
            time.sleep(0.02)

    def stop(self) -> None:
        if self._runner is not None and self._thread is not None:
            self._runner.should_exit = True
            self._thread.join(5)


@contextmanager
def phone_server(room: Room | None = None) -> Iterator[PhoneServer]:
    """The server in a thread of its own, on a free loopback port."""
    server = PhoneServer(room or Room())
    server.start()
    try:
        yield server
    finally:
        server.stop()
