"""The one HTML file that Streamlit serves, with what has to be in it before any script runs.

Streamlit's client looks for its server under the page's own address first (`/lesson/_stcore/...`), which is two failed requests on
every reload of a page; here it is told where the server is. The stylesheet comes with it, so that nothing is drawn without it and
then jumps. It also gives every browser a name, by which what it started is its own after a reload and in a second tab, and a learner's
token, by which its progress is. Owns these changes. Must not know what pages show.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lessons.learners import new_token
from lessons.store import StoreError
from pages.learner_cookie import cookie_in, learner_in, secure, set_learner

VIEWER_COOKIE = "shardlab_viewer"
"""A random name and nothing else. It lasts until the browser is closed, and no script can read it."""
VIEWER = re.compile(r"[A-Za-z0-9_-]{22}")


def head_script(page_names: Sequence[str]) -> str:
    """Names the server's address: the page's own, without the page's name. Right behind a proxy's path too."""
    names = "|".join(page_names)
    path = f"location.pathname.replace(/(^|\\/)({names})\\/?$/,'$1')"
    return f"<script>window.__streamlit={{BACKEND_BASE_URL:location.origin+{path}}}</script>"


class FrontDoor:
    """ASGI middleware: writes `head_script`, the app's title and its stylesheet into every HTML answer."""

    def __init__(
        self, app: ASGIApp, *, page_names: Sequence[str], title: str, style: str, is_dead: Callable[[str], bool] = lambda token: False,
        apart: re.Pattern[str] | None = None,
    ) -> None:
        """`apart`: paths of pages that bring all they need, and allow no script or style in them. `is_dead` tells a learner's token under
        which nothing may be kept again: its browser gets another one.
        """
        self._app = app
        self._is_dead = is_dead
        self._apart = apart
        self._head = head_script(page_names).encode()
        self._style = f"<style>{style}</style>".encode()
        self._title = f"<title>{title}</title>".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or (self._apart and self._apart.search(scope["path"])):
            await self._app(scope, receive, send)
            return
        if any(name == b"accept" and b"text/html" in value for name, value in scope["headers"]):
            # A page is 7 kB; compressed it could not be written into.
            scope = {**scope, "headers": [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]}
        held: dict[str, Any] = {"scope": scope}

        async def hold(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_html(message):
                held.update(start=message, body=b"")
            elif "start" in held and message["type"] == "http.response.body":
                held["body"] += message.get("body", b"")
                if not message.get("more_body"):
                    await self._finish(held, send)
            else:
                await send(message)

        await self._app(scope, receive, hold)

    async def _finish(self, held: dict[str, Any], send: Send) -> None:
        body: bytes = held["body"].replace(b"<title>Streamlit</title>", self._title, 1).replace(b"<head>", b"<head>" + self._head, 1)
        body = body.replace(b"</body>", self._style + b"</body>", 1)  # after Streamlit's own rules, which are in the head
        headers = [(name, value) for name, value in held["start"]["headers"] if name.lower() not in (b"content-length", b"etag")]
        if body:
            headers.append((b"content-length", str(len(body)).encode()))
        scope = held["scope"]
        if VIEWER.fullmatch(cookie_in(scope, VIEWER_COOKIE) or "") is None:
            cookie = f"{VIEWER_COOKIE}={secrets.token_urlsafe(16)}; Path=/; HttpOnly; SameSite=Lax{secure(scope)}"
            headers.append((b"set-cookie", cookie.encode()))
        headers.append((b"set-cookie", set_learner(scope, await self._learner(scope)).encode()))
        await send({**held["start"], "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _learner(self, scope: Scope) -> str:
        """The browser's own token, or a new one."""
        token = learner_in(scope)
        if token is None:
            return new_token()
        try:
            return new_token() if await asyncio.to_thread(self._is_dead, token) else token
        except StoreError:  # the page will say so
            return token


def _is_html(message: Message) -> bool:
    return any(name.lower() == b"content-type" and value.startswith(b"text/html") for name, value in message.get("headers", ()))
