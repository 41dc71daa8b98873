"""The cookie by which a browser goes on as the same learner: a random token that no script can read.

Owns its name and its attributes. Must not ask the store anything. The token stands nowhere else but in the link to continue elsewhere.
"""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie

from starlette.types import Scope

from lessons.learners import well_formed

LEARNER_COOKIE = "shardlab_learner"
KEPT_S = 400 * 24 * 3600
"""400 days, the longest that browsers allow; each visit begins them anew."""


def cookie_in(scope: Scope, name: str) -> str | None:
    """The value of a cookie of this request; None where there is none, or where the header cannot be read."""
    cookies = b"; ".join(value for key, value in scope["headers"] if key == b"cookie").decode("latin-1")
    try:
        morsel = SimpleCookie(cookies).get(name)
    except CookieError:
        return None
    return None if morsel is None else morsel.value


def learner_in(scope: Scope) -> str | None:
    """The token of this request; None where it has none that could be one."""
    token = cookie_in(scope, LEARNER_COOKIE)
    return token if well_formed(token) else None


def secure(scope: Scope) -> str:
    """The attribute that keeps a cookie from plain connections, where this one is not plain."""
    proxied = next((value for name, value in scope["headers"] if name == b"x-forwarded-proto"), b"")
    return "; Secure" if scope.get("scheme") == "https" or proxied == b"https" else ""


def set_learner(scope: Scope, token: str) -> str:
    """The value of a Set-Cookie header."""
    return f"{LEARNER_COOKIE}={token}; Max-Age={KEPT_S}; Path=/; HttpOnly; SameSite=Lax{secure(scope)}"
