"""Who comes in: the code in the address, limits on guessing, requests of other sites, and bodies that are too large or none of ours.

Owns what is refused before a class is asked, and the words for every refusal, as JSON that says no more than it has to: a code that is
wrong, malformed or of a class that was deleted is answered alike. Must not know what a request is for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from lessons.classroom import (
    ClassFullError,
    Classroom,
    ClassState,
    RemovedError,
    StaleClassError,
    UnknownClassError,
    UnknownParticipantError,
    VoteClosedError,
)
from lessons.store import StoreError
from lessons.store.faults import BUSY
from pages.classroom.instructor import instructor_in
from pages.clients import Tries, client_of
from pages.learner_cookie import cookie_in, secure
from scenarios.settings import Settings

PARTICIPANT_COOKIE = "shardlab_participant"
KEPT_S = 180 * 24 * 3600
WRONG_CODES, WRONG_CODES_S = 30, 60.0
"""Codes that lead nowhere, from one client in so many seconds: a room that mistypes stays below, 729 million codes do not."""
BODY_LIMIT_S = 15.0
THREADS = 16
CHANGE_LIMIT_S = 5.0
"""How long whoever changes something waits for the store: less than the patience of phones and consoles."""
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
RETRY_S = 1
"""When to come again while the store is away."""

Result = TypeVar("Result")


class Refusal(Exception):
    """A request that goes no further: `reason` is for scripts, `words` for people."""

    def __init__(self, status: int, reason: str, words: str, *, retry_s: int | None = None, more: dict[str, Any] | None = None) -> None:
        super().__init__(words)
        self.status, self.reason, self.words, self.retry_s, self.more = status, reason, words, retry_s, more or {}

    def response(self) -> Response:
        headers = HEADERS if self.retry_s is None else {**HEADERS, "Retry-After": str(self.retry_s)}
        words = self.words.encode("utf-8", "replace").decode()  # half a character, out of a request, cannot be sent
        return JSONResponse({"reason": self.reason, "words": words, **self.more}, self.status, headers=headers)


class LateError(StoreError):
    """The store has not answered in time: it may still do what was asked."""

    def __init__(self) -> None:
        super().__init__("The store has not answered yet. Look whether it was done, and try again if not.")


def refusal_of(error: Exception) -> Refusal | None:
    """What a class refuses, as it is answered; None for what is no refusal but a fault of ours."""
    match error:
        case Refusal():
            return error
        case UnknownClassError():
            return Refusal(404, "unknown", str(error))
        case UnknownParticipantError():
            return Refusal(401, "join", str(error))
        case RemovedError():
            return Refusal(403, "removed", str(error))
        case ClassFullError():
            return Refusal(403, "full", str(error))
        case VoteClosedError():
            return Refusal(409, "closed", str(error))
        case StaleClassError():
            return Refusal(409, "stale", str(error), more={"version": error.current.version})
        case LateError():
            return Refusal(503, "late", str(error), retry_s=RETRY_S)
        case StoreError():
            return Refusal(503, "store", str(error), retry_s=RETRY_S)
        case ValueError():
            return Refusal(422, "invalid", str(error))
    return None


def answering(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """`endpoint`, with its refusals as answers."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            return refusal.response()

    return answer


class Door:
    """Looks up classes for requests. Lives in one event loop."""

    def __init__(self, classroom: Callable[[], Classroom], settings: Settings) -> None:
        self.classroom = classroom
        self._public = urlsplit(settings.public_url).netloc
        self._wrong = Tries(most=WRONG_CODES, within_s=WRONG_CODES_S)
        self._looking = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="class-look")
        self._changing = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="class-change")

    async def ask(self, do: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """Call what looks at a class, in a thread of the classes: what waits there keeps no run and no page waiting."""
        return await asyncio.get_running_loop().run_in_executor(self._looking, partial(do, *arguments, **named))

    async def change(self, do: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """Call what writes into the store, which may hold its thread for seconds: who only looks is not kept waiting by it.

        Raises StoreError where it takes too long: what has not begun by then never begins, and LateError where it has.
        """
        changing = self._changing.submit(partial(do, *arguments, **named))
        waited_for = asyncio.wrap_future(changing)
        try:
            return await asyncio.wait_for(asyncio.shield(waited_for), CHANGE_LIMIT_S)
        except TimeoutError:
            waited_for.add_done_callback(lambda late: late.cancelled() or late.exception())  # nobody asks for it any longer
            if changing.cancel():
                raise StoreError(BUSY) from None
            raise LateError from None

    async def find(self, request: Request, code: str) -> ClassState:
        """The class of a code. Raises Refusal: 404 for every code that leads nowhere, 429 for a client that tries them out."""
        client = client_of(request)
        barred = self._wrong.too_many(client)
        try:
            state = await self.ask(lambda: self.classroom().state(code))
        except UnknownClassError as error:
            self._wrong.note(client)
            raise _too_many() if barred else error from None
        if barred and not await self.belongs(request, state.code):
            raise _too_many()
        return state

    async def belongs(self, request: Request, code: str) -> bool:
        """Whether who asks is known already: nobody is shut out of their own class by who guesses beside them."""
        return instructor_in(request.scope) is not None or await self.takes_part(request, code)

    async def takes_part(self, request: Request, code: str) -> bool:
        """Whether the cookie is that of a participant."""
        token = participant_in(request)
        try:
            await self.ask(lambda: self.classroom().audience_me(code, token))
        except (LookupError, PermissionError):
            return False
        return True

    def check_origin(self, request: Request) -> None:
        """Refuse what a page of another site sends with this browser's cookies.

        `Sec-Fetch-Site` is the browser's own judgement, whatever a proxy makes of the host. It is missing on plain connections, as in a
        room's own network; there the page's origin has to be a host of ours.
        """
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        hosts = {request.headers.get("host"), request.headers.get("x-forwarded-host"), self._public or None}
        ours = site in ("same-origin", "none") if site is not None else origin is None or urlsplit(origin).netloc in hosts - {None}
        if not ours:
            raise Refusal(403, "origin", "Another site sent this. Please open the page of your class yourself.")

    async def fields(self, request: Request, *, limit: int) -> dict[str, Any]:
        """The JSON object in the body. Raises Refusal."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "type", "The body must be JSON, and its type application/json.")
        raw = await body_of(request, limit=limit)
        try:
            found = json.loads(raw or b"{}")
        except (ValueError, RecursionError):
            raise Refusal(400, "invalid", "The body is no JSON.") from None
        if not isinstance(found, dict):
            raise Refusal(400, "invalid", "The body must be a JSON object.")
        return found


async def body_of(request: Request, *, limit: int) -> bytes:
    """The body; no more of it is read than `limit` bytes. Raises Refusal."""
    length = request.headers.get("content-length", "0")
    body = bytearray()
    try:
        if not (length.isascii() and length.isdigit() and len(length) < 12) or int(length) > limit:
            raise OverflowError
        async with asyncio.timeout(BODY_LIMIT_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise OverflowError
    except OverflowError:
        raise Refusal(413, "too_large", f"The body must be at most {limit} bytes.") from None
    except TimeoutError:
        raise Refusal(408, "slow", f"The body did not arrive within {BODY_LIMIT_S:.0f} s.") from None
    except ClientDisconnect:
        raise Refusal(400, "invalid", "The body did not arrive whole.") from None
    return bytes(body)


def participant_in(request: Request) -> str | None:
    """The token of this browser, whether or not anybody knows it."""
    return cookie_in(request.scope, PARTICIPANT_COOKIE)


def set_participant(request: Request, token: str) -> str:
    """The value of a Set-Cookie header. One token for all classes of a browser; no script can read it."""
    return f"{PARTICIPANT_COOKIE}={token}; Max-Age={KEPT_S}; Path=/; HttpOnly; SameSite=Lax{secure(request.scope)}"


def require_instructor(request: Request) -> str:
    """Who drives. Raises Refusal."""
    who = instructor_in(request.scope)
    if who is None:
        raise Refusal(401, "sign_in", "This needs an instructor who is signed in.")
    return who


def _too_many() -> Refusal:
    return Refusal(429, "too_many", "Too many codes were tried from your network. Please wait a minute.", retry_s=round(WRONG_CODES_S))
