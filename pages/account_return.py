"""Where signing in or out by an account leads back to: the instructors' page, which alone offers it. Streamlit leads to the first page.

Owns that way, and the word that signing in came to nothing. Must not know who signed in: that is between Streamlit and the provider.
"""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

ACCOUNT_COOKIE = "_streamlit_user"
"""Streamlit's, of whoever is signed in by an account."""
SIGN_OUT = "auth/logout"
"""Streamlit's address that forgets the account, and tells its provider where that has an address for it."""
OUTCOME, FAILED = "account", "failed"
"""What stands in the address of the page when nobody was signed in after all."""

_WAYS = re.compile(r"/(?P<deep>auth/(login|logout)|oauth2callback)$")
_TRIED = re.compile(rb"(^|&)(code|error)=")
_SIGNED_IN = re.compile(rf'{ACCOUNT_COOKIE}=[^";]'.encode())
"""To sign out, the cookie is set to nothing."""


class AccountReturn:
    """ASGI middleware: changes where Streamlit's answers to signing in and out lead within this server."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        way = _WAYS.search(scope["path"]) if scope["type"] == "http" else None
        if way is None:
            await self._app(scope, receive, send)
            return
        page = ("../" if "/" in way["deep"] else "") + "teach"  # without a host or a path: right behind a proxy too

        async def led(message: Message) -> None:
            if message["type"] == "http.response.start":
                failed = bool(_TRIED.search(scope["query_string"])) and not _signs_in(message)
                there = (f"{page}?{OUTCOME}={FAILED}" if failed else page).encode()
                message = {**message, "headers": [(name, there if _is_home(name, value) else value) for name, value in message["headers"]]}
            await send(message)

        await self._app(scope, receive, led)


def _signs_in(message: Message) -> bool:
    return any(name.lower() == b"set-cookie" and _SIGNED_IN.match(value) for name, value in message["headers"])


def _is_home(name: bytes, value: bytes) -> bool:
    """Whether it leads somewhere within this server. The provider's addresses have a host."""
    return name.lower() == b"location" and value.startswith(b"/") and not value.startswith(b"//")
