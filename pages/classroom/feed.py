"""`GET /live?class=CODE`: what phones, projector and console of a class are sent, the class and the run on show in one stream.

    /live?class=CODE                for participants, by their cookie
    /live?class=CODE&as=projector   for whoever has the code: it holds what the room can see
    /live?class=CODE&as=console     for instructors

Owns who may open which stream. When and what is told belongs to `room.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from lessons.classroom import Classroom, ClassState
from lessons.evidence import Recordings
from lessons.learners import hashed
from pages.classroom.door import Door, Refusal, participant_in, refusal_of, require_instructor
from pages.classroom.instructor import INSTRUCTOR_COOKIE, instructor_in
from pages.classroom.room import Room
from pages.classroom.screens import ClassViewer, Role
from pages.classroom.whereabouts import Whereabouts
from pages.learner_cookie import cookie_in
from scenarios.feed import stream
from scenarios.tail import Hub

ROLES: dict[str, Role] = {"": "audience", "projector": "projector", "console": "console"}
"""Value of `as` -> role."""

PROJECTORS, TABS = 50, 10
"""Open streams of one class for whoever has its code, and of one participant: the server's places are for the room."""


class ClassFeed:
    """An ASGI app, and the rooms behind it."""

    def __init__(
        self, door: Door, recordings: Callable[[], Recordings | None], where: Whereabouts,
        look_after: Callable[[str], Awaitable[None]],
    ) -> None:
        """`look_after` is called with the code of a class that is watched again, or shown another run: nobody here may follow that one."""
        self._door = door
        self._look_after = look_after
        self._recordings = recordings
        self._where = where
        self._rooms: dict[str, Room] = {}
        self._hub: Hub | None = None
        self._heard: Classroom | None = None

    def on(self, hub: Hub) -> ClassFeed:
        """With the tails of the server's runs."""
        self._hub = hub
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            role, room, viewer = await self._admit(request)
            screen = room.screens[role]
            await room.enter(screen, viewer, _seen(request))
            if _is_strangers(role, request) and len(screen.viewers) > PROJECTORS:  # many came in while this one was let in
                room.leave(screen, viewer)
                raise _crowded()
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            await refusal.response()(scope, receive, send)
            return
        try:
            await stream(screen, viewer, scope, receive, send)
        finally:
            room.leave(screen, viewer)

    async def _admit(self, request: Request) -> tuple[Role, Room, ClassViewer]:
        role = ROLES.get(request.query_params.get("as", ""))
        if role is None:
            raise Refusal(400, "invalid", "as: must be projector or console, or left out.")
        state = await self._door.find(request, request.query_params.get("class", "")[:40])
        if role == "console":
            require_instructor(request)
        if role == "audience":
            viewer = await self._participant(request, state)
        else:
            cookie = cookie_in(request.scope, INSTRUCTOR_COOKIE) or ""
            viewer = ClassViewer(token=cookie if role == "console" else "", version=state.version)
        if state.code not in self._rooms:
            await self._look_after(state.code)
        room = self.room(state.code)
        if _is_strangers(role, request) and len(room.screens[role].viewers) >= PROJECTORS:
            raise _crowded()
        if viewer.person:
            room.make_room(viewer.person, TABS)
        return role, room, viewer

    async def _participant(self, request: Request, state: ClassState) -> ClassViewer:
        """Raises what a class refuses to somebody who is not in it."""
        token = participant_in(request) or ""
        me = await self._door.ask(lambda: self._door.classroom().audience_me(state.code, token))
        return ClassViewer(token=token, person=_person(token), me=json.dumps(me, separators=(",", ":")).encode(), version=state.version)

    def room(self, code: str) -> Room:
        """That of a class; made when the first viewer comes."""
        assert self._hub is not None
        self._listen()
        if code not in self._rooms:
            self._rooms = {each: room for each, room in self._rooms.items() if room.watched or room.presence.reconnecting}
            self._hub.listen()
            self._rooms[code] = Room(
                code, self._hub, self._door.classroom, self._door.ask, self._recordings, self._where, self._look_after
            )
        return self._rooms[code]

    def urge(self, code: str) -> None:
        """The instructor did something."""
        if code in self._rooms:
            self._rooms[code].urge()

    def presence(self, code: str) -> tuple[int, int]:
        """How many are here, and how many are expected back."""
        room = self._rooms.get(code)
        return (room.presence.here, room.presence.reconnecting) if room else (0, 0)

    def heard(self, code: str, token: str) -> None:
        """A participant's sign of life. It is believed of who follows the class, and tells nobody anything."""
        if code in self._rooms:
            self._rooms[code].presence.heard(_person(token))

    def tell_me(self, code: str, token: str, me: dict[str, Any]) -> None:
        """A participant voted or took another name."""
        if code in self._rooms:
            self._rooms[code].tell_me(token, me)

    def _listen(self) -> None:
        """Hear of joins and votes of this process; those of others are looked for."""
        classroom = self._door.classroom()
        if classroom is not self._heard:
            self._heard = classroom
            loop = asyncio.get_running_loop()

            def heard(code: str) -> None:
                """From any thread."""
                if not loop.is_closed():
                    loop.call_soon_threadsafe(self._poke, code)

            classroom.subscribe(heard)

    def _poke(self, code: str) -> None:
        if code in self._rooms:
            self._rooms[code].poke()


def _person(token: str) -> int:
    """A participant's number: who it is matters for counting only, and must not lead back to the token."""
    return int(hashed(token)[:15], 16) + 1


def _is_strangers(role: Role, request: Request) -> bool:
    """Whether this stream is for somebody who has the code and nothing else."""
    return role == "projector" and instructor_in(request.scope) is None


def _crowded() -> Refusal:
    return Refusal(503, "busy", f"{PROJECTORS} projectors follow this class already.", retry_s=60)


def _seen(request: Request) -> str:
    """What a viewer had last: told by the browser, or in the address by a page that comes back by itself."""
    return (request.headers.get("last-event-id") or request.query_params.get("last", ""))[:200]
