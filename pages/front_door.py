"""The one HTML file that Streamlit serves, with what has to be in it before any script runs.

Streamlit's client looks for its server under the page's own address first (`/lesson/_stcore/...`), which is two failed requests on
every reload of a page; here it is told where the server is. The stylesheet comes with it, so that nothing is drawn without it and
then jumps. It also gives every browser a name, by which what it started is its own after a reload and in a second tab. Owns these changes.
Must not know what pages show.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

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

    def __init__(self, app: ASGIApp, *, page_names: Sequence[str], title: str, style: str) -> None:
        self._app = app
        self._head = head_script(page_names).encode()
        self._style = f"<style>{style}</style>".encode()
        self._title = f"<title>{title}</title>".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
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
        if not _has_name(held["scope"]):
            headers.append((b"set-cookie", _new_cookie(held["scope"])))
        await send({**held["start"], "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _is_html(message: Message) -> bool:
    return any(name.lower() == b"content-type" and value.startswith(b"text/html") for name, value in message.get("headers", ()))


def _has_name(scope: Scope) -> bool:
    cookies = b"; ".join(value for name, value in scope["headers"] if name == b"cookie").decode("latin-1")
    try:
        morsel = SimpleCookie(cookies).get(VIEWER_COOKIE)
    except CookieError:
        return False
    return morsel is not None and VIEWER.fullmatch(morsel.value) is not None


def _new_cookie(scope: Scope) -> bytes:
    proxied = next((value for name, value in scope["headers"] if name == b"x-forwarded-proto"), b"")
    secure = "; Secure" if scope.get("scheme") == "https" or proxied == b"https" else ""
    return f"{VIEWER_COOKIE}={secrets.token_urlsafe(16)}; Path=/; HttpOnly; SameSite=Lax{secure}".encode()
