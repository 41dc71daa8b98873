"""The link to continue elsewhere: `/continue/TOKEN` makes this browser go on as that learner.

The address holds the token, so that it is answered by a redirect which leaves no referrer and nothing in a title or a log. A browser with
progress of its own is asked first, for its cookie would be gone. Owns these answers and the limit on tries.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from lessons.learners import Learners
from lessons.store import StoreError
from pages.clients import Tries, client_of
from pages.learner_cookie import learner_in, set_learner

TRIES = 30
WITHIN_S = 60.0
"""Links that lead nowhere, from one network address; a class often shares one."""
HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex"}


def continue_routes(learners: Callable[[], Learners], *, now: Callable[[], float] = time.monotonic) -> list[Route]:
    """`GET` goes on where nothing is lost by it, else asks; `POST` is the answer yes. `now` tells seconds: tries are forgiven by them."""
    link = _ContinueLink(learners, now)
    return [Route("/continue/{token}", link.answer, methods=["GET", "POST"])]


class _ContinueLink:
    def __init__(self, learners: Callable[[], Learners], now: Callable[[], float]) -> None:
        self._learners = learners
        self._failed = Tries(most=TRIES, within_s=WITHIN_S, now=now)

    async def answer(self, request: Request) -> Response:
        client = client_of(request)
        if self._failed.too_many(client):
            return _page(429, "Too many links were tried", "Please wait a minute, then open your link again.")
        if request.method == "POST" and request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _page(403, "Another site sent you here", "Please open your link yourself.")
        token, own = str(request.path_params["token"]), learner_in(request.scope)
        try:
            known, has_own = await asyncio.to_thread(self._look_up, token, own)
        except StoreError as fault:
            return _page(503, "Your progress cannot be reached just now", str(fault))
        if not known:
            self._failed.note(client)
            return _page(
                404, "This link leads nowhere",
                "It is incomplete, or what belonged to it was deleted. The page “My progress” on your other device shows the whole link.",
            )
        if request.method == "GET" and has_own and own != token:
            return _asking()
        headers = {**HEADERS, "Set-Cookie": set_learner(request.scope, token)}
        return RedirectResponse("../", status_code=303, headers=headers)

    def _look_up(self, token: str, own: str | None) -> tuple[bool, bool]:
        """Whether something is kept under the link's token, and under the browser's own."""
        learners = self._learners()
        return learners.known(token), learners.known(own)


def _asking() -> Response:
    return _page(
        200, "This browser has progress of its own",
        "If you go on with the link’s progress, this browser’s own can only be reached by its own link. Keep that link first, from the "
        "page “My progress”, if you want both.",
        '<form method="post"><button type="submit">Go on with the link’s progress</button></form>',
    )


def _page(status: int, title: str, text: str, more: str = "") -> HTMLResponse:
    """A page without a script. Every text in it is ours: nothing of the request is repeated."""
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title} - Shardlab</title></head>"
        f'<body class="pg-plain"><main><h1>{title}</h1><p>{text}</p>{more}<p><a href="../">To the first page</a></p></main></body></html>',
        status_code=status, headers=HEADERS,
    )
