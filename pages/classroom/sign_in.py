"""Signing in as an instructor over HTTP: the form, the key that it posts, tickets of those who signed in otherwise, and the way out.

Owns these answers and the limit on wrong keys. Whom a key or a cookie stands for is decided in `instructor.py`.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pages.account_return import ACCOUNT_COOKIE, SIGN_OUT
from pages.classroom.door import Door, Refusal, body_of
from pages.classroom.files import Files, up
from pages.classroom.instructor import BY_KEY, INSTRUCTOR_COOKIE, get_instructors, set_instructor
from pages.clients import Tries, client_of
from pages.learner_cookie import cookie_in

WRONG_KEYS, WRONG_KEYS_S = 20, 60.0
BODY_BYTES = 2_048
WAY_ON = re.compile(r"teach|class/[A-Za-z0-9]{6}/(console|report)")
"""Where signing in may lead to: nowhere outside."""
HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}


class SignIn:
    """The routes below /instructor."""

    def __init__(self, door: Door, files: Files) -> None:
        self._door = door
        self._files = files
        self._wrong = Tries(most=WRONG_KEYS, within_s=WRONG_KEYS_S)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/instructor/sign-in", self.form, methods=["GET"]),
            Route("/instructor/sign-in", self.sign_in, methods=["POST"]),
            Route("/instructor/sign-out", self.sign_out, methods=["POST"]),
            Route("/instructor/ticket/{ticket}", self.ticket, methods=["GET"]),
        ]

    async def form(self, request: Request) -> Response:
        return self._form(request, 200, "The key was printed when this server was started.", _way_on(request.query_params.get("to", "")))

    async def sign_in(self, request: Request) -> Response:
        client = client_of(request)
        if self._wrong.too_many(client):
            return self._files.message(request, 429, "Too many wrong keys", "Please wait a minute.", retry_s=round(WRONG_KEYS_S))
        try:
            self._door.check_origin(request)
            fields = parse_qs((await body_of(request, limit=BODY_BYTES)).decode("utf-8", "replace"), max_num_fields=8)
        except (Refusal, ValueError) as error:
            status, words = (error.status, error.words) if isinstance(error, Refusal) else (400, "This form is not ours.")
            return self._files.message(request, status, "This is not possible", words)
        way_on = _way_on(fields.get("to", [""])[0])
        if not get_instructors().is_key(fields.get("key", [""])[0]):
            self._wrong.note(client)
            return self._form(request, 403, "That is not the key of this server. It was printed when the server was started.", way_on)
        return self._come_in(request, BY_KEY, way_on)

    async def ticket(self, request: Request) -> Response:
        """One good time, for whoever signed in by an account."""
        client = client_of(request)
        who = None if self._wrong.too_many(client) else get_instructors().redeem(request.path_params["ticket"])
        if who is None:
            self._wrong.note(client)
            return self._files.message(request, 403, "This link was used, or is too old", "Go back to the page for instructors.")
        return self._come_in(request, who, "teach")

    async def sign_out(self, request: Request) -> Response:
        try:
            self._door.check_origin(request)
        except Refusal as refusal:
            return self._files.message(request, refusal.status, "This is not possible", refusal.words)
        get_instructors().sign_out(cookie_in(request.scope, INSTRUCTOR_COOKIE))
        # Who is signed in by an account as well would be a click away from coming in again.
        way_on = SIGN_OUT if ACCOUNT_COOKIE in request.cookies else "teach"
        return RedirectResponse(f"{up(request)}{way_on}", 303, {**HEADERS, "Set-Cookie": set_instructor(request.scope, "")})

    def _come_in(self, request: Request, who: str, way_on: str) -> Response:
        cookie = set_instructor(request.scope, get_instructors().sign(who))
        return RedirectResponse(f"{up(request)}{way_on}", 303, {**HEADERS, "Set-Cookie": cookie})

    def _form(self, request: Request, status: int, words: str, way_on: str) -> Response:
        form = (
            f'<form method="post" action="{up(request)}instructor/sign-in"><input type="hidden" name="to" value="{way_on}">'
            '<label for="key">Instructor key</label>'
            '<input id="key" name="key" type="password" autocomplete="current-password" required autofocus>'
            '<button type="submit">Sign in</button></form>'
            f'<p>The <a href="{up(request)}teach">page for instructors</a> has every way to sign in.</p>'
        )
        return self._files.message(request, status, "Sign in as instructor", words, form)


def _way_on(asked: str) -> str:
    return asked if WAY_ON.fullmatch(asked) else "teach"
