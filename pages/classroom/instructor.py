"""Who may drive a class: the instructor's key, the cookie that stands for it, and tickets for those who signed in otherwise.

The cookie says who and until when, signed with a secret that is made of the key: another key ends every sign-in, and servers with the
same key take each other's cookies. Owns key, cookie and tickets. Must not draw, and must not know HTTP but for cookies.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import re
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path

from starlette.types import Scope

from pages.learner_cookie import cookie_in, secure
from scenarios.settings import Settings, load_settings

INSTRUCTOR_COOKIE = "shardlab_instructor"
SIGNED_IN_S = 12 * 3600
TICKET_S = 60
KEY_FILE = "instructor.key"
BY_KEY = "key"
"""Who somebody is that gave the key; anybody else is an e-mail address."""

_MARK = re.compile(r"(?P<body>[0-9]{1,12}\.[A-Za-z0-9_-]{1,512}\.[A-Za-z0-9_-]{16})\.(?P<seal>[0-9a-f]{64})")


class Instructors:
    """Signs people in and knows them again. Thread-safe."""

    def __init__(self, settings: Settings, *, now: Callable[[], float] = time.time) -> None:
        self.key = settings.instructor_key or _kept_key(settings.data_dir)
        self._addresses = frozenset(filter(None, settings.instructors.split(",")))
        self._now = now
        self._used: dict[str, float] = {}
        """Tickets that were taken, and cookies that were signed out -> until when they would be good."""
        self._lock = threading.Lock()

    def is_key(self, key: str) -> bool:
        """In constant time: hashes of equal length are compared."""
        return hmac.compare_digest(_digest(key.strip()), _digest(self.key))

    def is_instructor(self, address: str) -> bool:
        """Whether who signed in under this e-mail address may drive classes."""
        return address.strip().casefold() in self._addresses

    def sign(self, who: str = BY_KEY) -> str:
        """The cookie's value for `who`: BY_KEY or an e-mail address."""
        return self._marked("cookie", who, SIGNED_IN_S)

    def who(self, cookie: str | None) -> str | None:
        """Whom a cookie stands for; None where it is none of ours, too old, or of somebody who is no instructor any longer."""
        who = None if cookie in self._used else self._read("cookie", cookie or "")
        return who if who == BY_KEY or (who is not None and self.is_instructor(who)) else None

    def sign_out(self, cookie: str | None) -> None:
        """This cookie counts no longer, wherever a copy of it is. Kept in memory: after a restart it would count again."""
        if cookie is not None and self._read("cookie", cookie) is not None:
            with self._lock:
                self._spend(cookie, SIGNED_IN_S)

    def ticket(self, who: str = BY_KEY) -> str:
        """What `/instructor/ticket/TICKET` takes once, within a minute, for a cookie: a page that has no answer of its own to set one."""
        return self._marked("ticket", who, TICKET_S)

    def redeem(self, ticket: str) -> str | None:
        """Whom a ticket was made for; None for one that is used, too old or forged."""
        who = self._read("ticket", ticket)
        if who is None or not (who == BY_KEY or self.is_instructor(who)):
            return None
        with self._lock:
            if ticket in self._used:
                return None
            self._spend(ticket, TICKET_S)
        return who

    def _spend(self, mark: str, seconds: int) -> None:
        now_s = self._now()
        self._used = {**{each: until_s for each, until_s in self._used.items() if until_s > now_s}, mark: now_s + seconds}

    def _marked(self, kind: str, who: str, seconds: int) -> str:
        name = base64.urlsafe_b64encode(who.encode()).decode().rstrip("=")
        body = f"{int(self._now()) + seconds}.{name}.{secrets.token_urlsafe(12)}"
        return f"{body}.{self._seal(kind, body)}"

    def _read(self, kind: str, text: str) -> str | None:
        found = _MARK.fullmatch(text)
        if found is None or not hmac.compare_digest(self._seal(kind, found["body"]), found["seal"]):
            return None
        until, name, _ = found["body"].split(".")
        if int(until) < self._now():
            return None
        return base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()

    def _seal(self, kind: str, body: str) -> str:
        return hmac.new(_digest(f"shardlab {kind} {self.key}"), body.encode(), hashlib.sha256).hexdigest()


def instructor_in(scope: Scope) -> str | None:
    """Who drives, by the cookie of this request; None for everybody else."""
    return get_instructors().who(cookie_in(scope, INSTRUCTOR_COOKIE))


def set_instructor(scope: Scope, value: str) -> str:
    """The value of a Set-Cookie header; an empty `value` signs out."""
    kept_s = SIGNED_IN_S if value else 0
    return f"{INSTRUCTOR_COOKIE}={value}; Max-Age={kept_s}; Path=/; HttpOnly; SameSite=Strict{secure(scope)}"


def _kept_key(data_dir: Path) -> str:
    """The key of this data folder, made at the first start. Where nothing can be written, one for as long as the server runs."""
    path = data_dir / KEY_FILE
    with contextlib.suppress(OSError):
        data_dir.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _write_first(path, f"{_new_key()}\n")
        kept = path.read_text(encoding="utf-8").strip()
        if re.fullmatch(r"[!-~]{12,256}", kept):
            return kept
    return _new_key()


def _write_first(path: Path, text: str) -> None:
    """Unless another server was first; whole from the moment it is there. Only its owner may read it."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _new_key() -> str:
    """One that can be typed on a phone: four groups of four, 80 random bits."""
    letters = base64.b32encode(secrets.token_bytes(10)).decode().lower()
    return "-".join(letters[at : at + 4] for at in range(0, 16, 4))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


_instructors: Instructors | None = None
_lock = threading.Lock()


def get_instructors() -> Instructors:
    """Those of this process, with the settings of its environment; made on the first call."""
    global _instructors
    with _lock:
        if _instructors is None:
            _instructors = Instructors(load_settings())
        return _instructors


def forget_instructors() -> None:
    """The next call of `get_instructors` reads the settings anew."""
    global _instructors
    with _lock:
        _instructors = None
