"""The addresses of a class, as Starlette routes: phones, projector, console, votes, what the instructor does, and files.

    /c  /c/CODE  /c/CODE/join  vote  here  view                  the audience, by the cookie of a participant
    /class/CODE/projector  /class/CODE/qr.svg                    whoever has the code: what the room sees
    /class/CODE/console  do  experiment  pause  replay           instructors, by their cookie
    /class/CODE/results.csv  report                              instructors
    /instructor/sign-in  sign-out  ticket/TICKET
    /class-assets/NAME                                           scripts and styles

Owns status codes, cookies and who may do what. Every POST has to come from a page of ours. What may be seen is decided in
`lessons.classroom`; must not filter a view here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from lessons.classroom import Classroom, ClassState, Participant, UnknownClassError, get_classroom
from lessons.classroom.words import is_token, normal_code
from pages.classroom.balloting import Ballots
from pages.classroom.conductor import Conductor
from pages.classroom.door import (
    HEADERS,
    Door,
    Refusal,
    answering,
    participant_in,
    refusal_of,
    require_instructor,
    set_participant,
)
from pages.classroom.feed import ClassFeed
from pages.classroom.files import PAGE_HEADERS, Files, up
from pages.classroom.instructor import instructor_in
from pages.classroom.joining import Joins
from pages.classroom.phone.source import phone_page
from pages.classroom.qr import qr_svg
from pages.classroom.report_page import report_page
from pages.classroom.sign_in import SignIn
from pages.classroom.stage.source import console_page, projector_page
from pages.classroom.whereabouts import Whereabouts
from pages.clients import client_of
from scenarios.runs import Runs, get_runs
from scenarios.settings import Settings

CLEAR = "clear"
"""In place of a cause: no run on the screens."""
UNTOLD = ("show_run",)
"""Actions that do not come from a browser: what is on the screens is started by the conductor."""
BODY_BYTES = 4_096
"""Of a participant's request."""
ACTION_BYTES = 65_536
"""Of an instructor's: a note is the longest."""


class ClassRoutes:
    """Everything of classes in one process; `feed` is what answers /live?class=CODE."""

    def __init__(
        self, settings: Settings, *, classroom: Callable[[], Classroom] = get_classroom, runs: Callable[[], Runs] = get_runs
    ) -> None:
        self.door = Door(classroom, settings)
        self.files = Files()
        self._classroom = classroom
        self._runs = runs
        self._limit = settings.participants_limit
        self._joins = Joins(most=settings.joins_per_client_limit)
        self._where = Whereabouts(settings)
        self.feed = ClassFeed(self.door, recordings=runs, where=self._where, look_after=self._look_after)
        self.conductor = Conductor(runs, classroom, self.door.ask, self.door.change, self.feed.urge)
        self._ballots = Ballots(classroom)
        self._sign_in = SignIn(self.door, self.files)

    def routes(self) -> list[BaseRoute]:
        get, post = ["GET"], ["POST"]
        return [
            Route("/c", self.enter, methods=get),
            Route("/c/{code}", self.phone, methods=get),
            Route("/c/{code}/join", answering(self.join), methods=post),
            Route("/c/{code}/vote", answering(self.vote), methods=post),
            Route("/c/{code}/here", answering(self.here), methods=post),
            Route("/c/{code}/view", answering(self.view), methods=get),
            Route("/class/{code}/projector", self.projector, methods=get),
            Route("/class/{code}/console", self.console, methods=get),
            Route("/class/{code}/qr.svg", answering(self.qr), methods=get),
            Route("/class/{code}/do", answering(self.do), methods=post),
            Route("/class/{code}/experiment", answering(self.experiment), methods=post),
            Route("/class/{code}/pause", answering(self.pause), methods=post),
            Route("/class/{code}/replay", answering(self.replay), methods=post),
            Route("/class/{code}/results.csv", answering(self.results), methods=get),
            Route("/class/{code}/report", self.report, methods=get),
            Route("/class-assets/{name:path}", self.files.asset, methods=get),
            *self._sign_in.routes(),
        ]

    async def close(self) -> None:
        """The server ends: follow no run any longer."""
        await self.conductor.close()

    async def _look_after(self, code: str) -> None:
        await self.conductor.look_after(code)

    # The audience

    async def enter(self, request: Request) -> Response:
        """The page on which a code is typed."""
        return self.files.page(request, phone_page(self.files.url_of(request)))

    async def phone(self, request: Request) -> Response:
        """The page of a class. A code that leads nowhere gets the same page, which asks for another one."""
        try:
            await self.door.find(request, request.path_params["code"])
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            if isinstance(error, UnknownClassError):
                return self.files.page(request, phone_page(self.files.url_of(request), unknown=True), status=404)
            return self._message(request, refusal)
        return self.files.page(request, phone_page(self.files.url_of(request)))

    async def join(self, request: Request) -> Response:
        """Take part, or take another name: the view of the class, and the cookie."""
        self.door.check_origin(request)
        state = await self.door.find(request, request.path_params["code"])
        fields = await self.door.fields(request, limit=BODY_BYTES)
        nickname = fields.get("nickname")
        if nickname is not None and not isinstance(nickname, str):
            raise Refusal(422, "invalid", "nickname: must be a text.")
        person = await self._join(request, state.code, nickname)
        view = await self.door.ask(self._classroom().audience_view, state.code, person.token)
        self.feed.tell_me(state.code, person.token, view["me"])
        return _json(view, {"Set-Cookie": set_participant(request, person.token)})

    async def _join(self, request: Request, code: str, nickname: str | None) -> Participant:
        token = participant_in(request)
        known = is_token(token) and await self.door.takes_part(request, code)
        client = client_of(request)
        if not known and not self._joins.take(code, client):
            raise Refusal(429, "limit", f"{self._joins.most} have joined this class from your network already.", retry_s=60)
        try:
            return await self.door.change(self._classroom().join, code, token, nickname, limit=self._limit)
        except Exception:
            if not known:
                self._joins.give_back(code, client)
            raise

    async def vote(self, request: Request) -> Response:
        """Cast a vote; 200 once it is in the store."""
        self.door.check_origin(request)
        state = await self.door.find(request, request.path_params["code"])
        fields = await self.door.fields(request, limit=BODY_BYTES)
        which, choice, item_no = fields.get("round"), fields.get("choice"), fields.get("item_no")
        if not isinstance(which, str) or not isinstance(choice, str) or not isinstance(item_no, int) or isinstance(item_no, bool):
            raise Refusal(422, "invalid", "A vote names its round, its item_no and its choice.")
        token = participant_in(request) or ""
        receipt, me = await self._ballots.cast(state.code, token, round=which, choice=choice, item_no=item_no)
        self.feed.tell_me(state.code, token, me)
        return _json({
            "recorded": True, "version": receipt.version, "round": receipt.round, "item_no": receipt.item_no, "choice": receipt.choice,
            "at_s": receipt.at_s, "me": me,
        })  # fmt: skip

    async def here(self, request: Request) -> Response:
        """A phone's sign of life. Answered alike whatever the code and whoever asks, without a look at the class: many of them come."""
        self.door.check_origin(request)
        self.feed.heard(normal_code(request.path_params["code"]), participant_in(request) or "")
        return Response(status_code=204, headers=HEADERS)

    async def view(self, request: Request) -> Response:
        """What the feed tells a participant, once."""
        state = await self.door.find(request, request.path_params["code"])
        return _json(await self.door.ask(self._classroom().audience_view, state.code, participant_in(request)))

    # The room

    async def projector(self, request: Request) -> Response:
        return await self._stage(request, projector_page)

    async def qr(self, request: Request) -> Response:
        """The way to the phone page, for cameras."""
        state = await self.door.find(request, request.path_params["code"])
        svg = await self.door.ask(lambda: qr_svg(self._where.join_url(request, state.code)))
        return Response(svg, media_type="image/svg+xml", headers={**HEADERS, "Content-Security-Policy": "default-src 'none'"})

    # The instructor

    async def console(self, request: Request) -> Response:
        if instructor_in(request.scope) is None:
            return self._to_sign_in(request, "console")
        return await self._stage(request, console_page)

    async def do(self, request: Request) -> Response:
        """One thing that an instructor does: `action` with its arguments. The console's view as it is then."""
        code, fields = await self._driving(request)
        action, version = fields.pop("action", None), fields.pop("expect_version", None)
        if not isinstance(action, str) or action in UNTOLD:
            raise Refusal(422, "invalid", "An action names itself and its arguments.")
        if version is not None and (not isinstance(version, int) or isinstance(version, bool)):
            raise Refusal(422, "invalid", "expect_version: must be a whole number.")
        await self.door.change(lambda: self._classroom().act(code, action, expect_version=version, **fields))
        return await self._done(code)

    async def experiment(self, request: Request) -> Response:
        """A cause, the fix or the race onto all screens; `clear` takes it off."""
        code, fields = await self._driving(request)
        cause, mode, knobs = fields.get("cause_id"), fields.get("mode", "live"), fields.get("knobs")
        if cause == CLEAR:
            await self.conductor.clear(code)
            return await self._done(code)
        if not isinstance(cause, str) or mode not in ("live", "recorded") or not (knobs is None or _is_knobs(knobs)):
            raise Refusal(422, "invalid", "An experiment names its cause_id, a mode (live or recorded) and, if any, knobs.")
        await self.conductor.experiment(code, cause, mode=mode, knobs=knobs)
        return await self._done(code)

    async def pause(self, request: Request) -> Response:
        """Hold the picture on all screens, or let it go on."""
        code, fields = await self._driving(request)
        await self.conductor.pause(code, fields.get("paused", True) is True)
        return await self._done(code)

    async def replay(self, request: Request) -> Response:
        code, _ = await self._driving(request)
        await self.conductor.replay(code)
        return await self._done(code)

    async def results(self, request: Request) -> Response:
        """One row per participant, safe to open in a spreadsheet."""
        require_instructor(request)
        state = await self.door.find(request, request.path_params["code"])
        text = await self.door.ask(lambda: self._classroom().results_csv(state.code, bom=True))
        name = f'attachment; filename="class-{state.code}.csv"'
        return PlainTextResponse(text, media_type="text/csv; charset=utf-8", headers={**HEADERS, "Content-Disposition": name})

    async def report(self, request: Request) -> Response:
        """The class afterwards, on a page that prints."""
        code = request.path_params["code"]
        if instructor_in(request.scope) is None:
            return self._to_sign_in(request, "report")

        async def page(state: ClassState) -> Response:
            report = await self.door.ask(lambda: self._classroom().report(state.code))
            return self.files.page(request, report_page(report, self.files.url_of(request)))

        return await self._shown(request, code, page)

    async def _driving(self, request: Request) -> tuple[str, dict[str, Any]]:
        """The class and the fields of a request by which an instructor acts."""
        self.door.check_origin(request)
        require_instructor(request)
        state = await self.door.find(request, request.path_params["code"])
        self._where.remember(request)
        return state.code, await self.door.fields(request, limit=ACTION_BYTES)

    async def _done(self, code: str) -> Response:
        self.feed.urge(code)
        here, reconnecting = self.feed.presence(code)
        return _json(await self.door.ask(lambda: self._classroom().console_view(
            code, here=here, reconnecting=reconnecting, recordings=self._runs(), unreachable=self._where.unreachable()
        )))  # fmt: skip

    async def _stage(self, request: Request, page: Callable[..., str]) -> Response:
        async def drawn(state: ClassState) -> Response:
            if instructor_in(request.scope) is not None:  # anybody could send another address on to the projector
                self._where.remember(request)
            return self.files.page(request, page(state.code, self.files.url_of(request)))

        return await self._shown(request, request.path_params["code"], drawn)

    async def _shown(self, request: Request, code: str, page: Callable[[ClassState], Awaitable[Response]]) -> Response:
        """The page of a class, or one that says why there is none."""
        try:
            return await page(await self.door.find(request, code))
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            return self._message(request, refusal)

    def _to_sign_in(self, request: Request, page: str) -> Response:
        """To the key first, and from there to a page of the class."""
        way_on = quote(f"class/{request.path_params['code'][:12]}/{page}")
        return RedirectResponse(f"{up(request)}instructor/sign-in?to={way_on}", 303, PAGE_HEADERS)

    def _message(self, request: Request, refusal: Refusal) -> Response:
        titles = {404: "There is no such class", 429: "Please wait a minute", 503: "The class cannot be reached just now"}
        title = titles.get(refusal.status, "This is not possible")
        return self.files.message(request, refusal.status, title, refusal.words, retry_s=refusal.retry_s)


def _is_knobs(knobs: object) -> bool:
    """Whether they have the shape of knobs; what they may be is said by `scenarios.config`."""
    return isinstance(knobs, dict) and len(knobs) <= 20 and all(isinstance(value, (str, int)) for value in knobs.values())


def _json(value: dict[str, Any], more: dict[str, str] | None = None) -> Response:
    return JSONResponse(value, headers={**HEADERS, **(more or {})})
