"""The projector and the console with a class that is scripted: every state can be had at will, and what was pressed is kept.

Owns views as the server makes them and the little server. Must not import anything of a real class.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import streamlit
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from lessons.model import SILHOUETTES, Lesson
from pages.classroom.qr import qr_svg
from pages.classroom.stage.source import console_page, projector_page, stage_assets
from pages.components.lanes.source import lanes_script, style
from tests.browser.lanes_harness import Event
from tests.browser.server import free_port

CODE = "K7M4QX"
MEDIA = Path(streamlit.__file__).parent / "static/static/media"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'"
View = dict[str, Any]


def votes_of(lesson: Lesson, *shares: int) -> View:
    counts = {option.id: share for option, share in zip(lesson.options, shares, strict=True)}
    return {"total": sum(shares), "counts": counts}


def item_of(lesson: Lesson, no: int = 1, of: int = 3) -> View:
    options = [{"id": option.id, "letter": "ABCDEFG"[at], "text": option.text} for at, option in enumerate(lesson.options)]
    return {
        "no": no, "of": of, "title": lesson.title, "level": lesson.level, "symptom_html": lesson.symptom.html, "question": lesson.question,
        "still": lesson.still, "options": options,
    }  # fmt: skip


def run_view(lesson: Lesson, run_id: str, **changes: Any) -> View:
    return {
        "run_id": run_id, "title": lesson.causes[2].title, "odd_rank": 0, "metric": "busy", "mode": "live", "recorded_words": "",
        "paused": False, "prediction": "only0", "sentence": "",
    } | changes  # fmt: skip


def projector_view(lesson: Lesson, state: str, **changes: Any) -> View:
    """What the projector is told in `state`."""
    first, second = votes_of(lesson, 62, 41, 98, 13), votes_of(lesson, 20, 14, 177, 6)
    after = state in ("votes", "discuss", "predict", "experiments", "key", "explanation")
    runs = state in ("experiments", "key", "explanation")
    view: View = {
        "role": "projector", "version": 7, "code": CODE, "title": "Scaling on one node", "state": state, "server_s": time.time(),
        "item": None if state in ("lobby", "ended") else item_of(lesson), "closes_s": None,
        "votes": {"first": first, "second": second if runs else None} if after else None,
        "round": {"vote": "first", "revote": "second", "predict": "predict"}.get(state),
        "predictions": {"total": 200, "counts": {"only0": 122, "all_high": 44, "all_low": 20, "low0": 14}} if runs else None,
        "predict": None, "run": None, "race": None, "key": None, "explanation": None, "may_vote": False,
        "here": 287, "answered": 214, "joined": 290, "blank": False, "frozen": False, "join_words": f"demo.example.org/c/{CODE}",
    }
    if state == "predict":
        choices = [{"id": name, "words": words} for name, words in SILHOUETTES.items()]
        view["predict"] = {"cause_title": lesson.causes[2].title, "choices": choices}
    if state in ("key", "explanation"):
        rebuttals = [{"option_id": option.id, "html": option.rebuttal.html} for option in lesson.options]
        view["key"] = {"option_id": lesson.key.id, "rebuttals": rebuttals}
    if state == "explanation":
        view["explanation"] = {
            "why_html": lesson.why.html, "infographic_svg": lesson.infographic, "infographic_alt": lesson.infographic_alt,
            "exam_html": lesson.exam_box.html, "on_call_html": lesson.on_call_box.html,
        }
    return view | changes


def console_view(lesson: Lesson, state: str, **changes: Any) -> View:
    """What the console is told in `state`."""
    view = projector_view(lesson, state)
    counts = votes_of(lesson, 62, 41, 98, 13)
    shares = [
        {"id": option["id"], "letter": option["letter"], "n": counts["counts"][option["id"]],
         "pct": round(100 * counts["counts"][option["id"]] / counts["total"], 1)}
        for option in item_of(lesson)["options"]
    ]  # fmt: skip
    order = ["lobby", "vote", "votes", "discuss", "revote", "predict", "experiments", "key", "explanation", "ended"]
    at = order.index(state)
    in_item = view["item"] is not None
    causes = [{"id": cause.id, "title": cause.title, "note": cause.note, "recording_ready": at % 2 == 0} for cause in lesson.causes]
    people = [
        {"id": number, "nickname": name, "hidden": False, "removed": False}
        for number, name in enumerate(["Ada", None, "<b>Bo</b>", "Chidi", "Dana"], 1)
    ]
    return {
        **view, "role": "console", "reconnecting": 2, "participants": people,
        "shares": {"round": "first", "n": counts["total"], "right_pct": 45.8, "options": shares} if in_item else None,
        "suggestion": {"words": "Let them discuss", "share_pct": 45.8, "n": 214, "round": "first"} if in_item else None,
        "key_id": lesson.key.id if in_item else None, "notes": "Ask who has seen this at work.",
        "predicted": {"only0": 122, "all_high": 44},
        "plan": {"used_s": 372.0, "planned_s": 1200.0, "item_used_s": 130.0, "item_planned_s": 400.0},
        "back": order[at - 1] if at else None, "next": order[at + 1] if at < 9 else None,
        "skip": "predict" if state in ("votes", "discuss") else None, "go_to": [], "order": "experiments_first",
        "may_reopen": at in (2, 3),
        "log": [
            {"at_s": time.time() - 65, "words": "Vote, item 1.", "tone": "info"},
            {"at_s": time.time() - 9, "words": "The run did not start in 2 s: the recording is on screen. Try later.", "tone": "warn"},
        ],
        "causes": [*causes, {"id": "fix", "title": "The healthy script", "note": "", "recording_ready": True}] if in_item else [],
        "show_names": False, "hands": {"first": {}, "second": {}, "predict": {}},
    } | changes  # fmt: skip


class StageServer:
    """Serves both pages at `url`; `show(view)` reaches every open page of that view's role, `play` shows a run's events."""

    def __init__(self) -> None:
        self.views: dict[str, View] = {}
        self.streams: list[tuple[str, asyncio.Queue[str]]] = []
        self.runs = 0
        self.backlog: list[str] = []
        self.done: list[View] = []
        """Bodies of what was posted, with the address's last word as `to`."""
        self.answers: list[tuple[int, View]] = []
        """What is answered next; afterwards 200."""
        self.url = ""
        self._loop: asyncio.AbstractEventLoop | None = None

    def show(self, view: View) -> View:
        self.views[view["role"]] = view
        self._push(_event("class", view, f"{view['version']}.0.0"), view["role"])
        return view

    def play(self, run_id: str, events: list[Event]) -> None:
        """The run is on all screens, with `events` in one piece."""
        self.runs += 1
        self.backlog = [_event("shown", {"run_id": run_id, "showing": self.runs}, f"7.{run_id}-{self.runs}.0")]
        self._push(self.backlog[0])
        self.more(events)

    def more(self, events: list[Event]) -> None:
        """More of the run on screen."""
        for name, data in events:
            text = _event(name, data, f"7.{self.runs}.{len(self.backlog)}")
            self.backlog.append(text)
            self._push(text)

    def app(self) -> Starlette:
        assets = {**stage_assets(), "lanes.js": lanes_script(), "lanes.css": style()}
        address = lambda name: f"/class-assets/{name}?v=1"  # noqa: E731

        async def asset(request: Request) -> Response:
            name = request.path_params["name"]
            return Response(assets[name], media_type="text/javascript" if name.endswith(".js") else "text/css")

        async def page(request: Request) -> Response:
            make = projector_page if request.path_params["page"] == "projector" else console_page
            return HTMLResponse(make(CODE, address), headers={"Content-Security-Policy": POLICY})

        async def qr(request: Request) -> Response:
            return Response(qr_svg(f"https://demo.example.org/c/{CODE}"), media_type="image/svg+xml")

        async def font(request: Request) -> Response:
            return FileResponse(MEDIA / request.path_params["name"])

        async def do(request: Request) -> Response:
            self.done.append({"to": request.path_params["to"], **await request.json()})
            status, body = self.answers.pop(0) if self.answers else (200, {})
            return JSONResponse(body, status)

        return Starlette(
            routes=[
                Route("/class-assets/{name}", asset), Route("/class/K7M4QX/qr.svg", qr), Route("/live", self.live),
                Route("/static/media/{name}", font),
                Route("/class/K7M4QX/{page}", page), Route("/class/K7M4QX/{to}", do, methods=["POST"]),
            ]
        )  # fmt: skip

    async def live(self, request: Request) -> Response:
        self._loop = asyncio.get_running_loop()
        role = request.query_params["as"]
        queue: asyncio.Queue[str] = asyncio.Queue()
        if role in self.views:
            queue.put_nowait(_event("class", self.views[role], "7.0.0"))
        for text in self.backlog:
            queue.put_nowait(text)
        entry = (role, queue)
        self.streams.append(entry)
        return StreamingResponse(self._stream(entry, request), media_type="text/event-stream")

    async def _stream(self, entry: tuple[str, asyncio.Queue[str]], request: Request) -> AsyncIterator[str]:
        try:
            yield "retry: 500\n\n"
            while not await request.is_disconnected():
                try:
                    yield await asyncio.wait_for(entry[1].get(), 0.2)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self.streams.remove(entry)

    def _push(self, text: str, role: str | None = None) -> None:
        for name, queue in list(self.streams):
            if self._loop is not None and role in (None, name):
                self._loop.call_soon_threadsafe(queue.put_nowait, text)


def _event(name: str, data: View, number: str) -> str:
    return f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n"


@contextmanager
def stage_server() -> Iterator[StageServer]:
    """The server in a thread of its own, on a free loopback port."""
    server = StageServer()
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
