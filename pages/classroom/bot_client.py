"""A phone without a screen: posts as the phone page does, follows the class's event stream, keeps its cookie.

Plain asyncio, so that a rehearsal needs no HTTP client beside the server. Owns what is sent and how answers are read; what to send is
for `pages.classroom.rehearsal`. Must not know lessons or the class's store: it sees what a phone sees.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlsplit

ANSWER_LIMIT_S = 15.0
LONGEST_BODY = 2_000_000
LINE_LIMIT = 4_000_000
"""The longest line of a stream: a class's view with its drawing."""

Headers = dict[str, str]


class PhoneError(OSError):
    """The server could not be reached, or what it said cannot be read; `status` where it was said by HTTP."""

    def __init__(self, words: str, status: int = 0) -> None:
        super().__init__(words)
        self.status = status


@dataclass(frozen=True, kw_only=True)
class Event:
    """One server-sent event."""

    name: str
    id: str
    data: str


class Phone:
    """One browser: an address and the cookies it was given."""

    def __init__(self, base: str) -> None:
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"base={base!r}: must begin with http:// or https:// and a host")
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path.rstrip("/")
        self._host = parts.hostname
        self._netloc = parts.netloc
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._port = parts.port or (443 if self._tls else 80)
        self._cookies: dict[str, str] = {}

    async def post(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """(status, answer) of a POST of JSON; an answer that is no object is empty. Raises PhoneError."""
        async with self._request("POST", path, json.dumps(body).encode()) as (status, headers, reader):
            text = b"".join([piece async for piece in _body(headers, reader)])
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        return status, found if isinstance(found, dict) else {}

    async def events(self, path: str, last_id: str = "") -> AsyncGenerator[Event]:
        """The events of a stream, until it ends. Raises PhoneError."""
        more = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_id} if last_id else {})
        async with self._request("GET", path, None, more, limit_s=None) as (status, headers, reader):
            if status != 200:
                raise PhoneError(f"the stream was answered with {status}", status)
            left = ""
            async for piece in _body(headers, reader):
                left += piece.decode("utf-8", "replace")
                *whole, left = left.split("\n\n")
                for text in whole:
                    event = _event(text)
                    if event is not None:
                        yield event

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, body: bytes | None, more: Headers | None = None, *, limit_s: float | None = ANSWER_LIMIT_S
    ) -> AsyncIterator[tuple[int, Headers, asyncio.StreamReader]]:
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(limit_s):
                async with asyncio.timeout(ANSWER_LIMIT_S):
                    reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=LINE_LIMIT)
                    writer.write(self._head(method, path, body, more or {}) + (body or b""))
                    status, headers = self._told(await reader.readuntil(b"\r\n\r\n"))
                yield status, headers, reader
        except TimeoutError:
            raise PhoneError(f"no answer within {ANSWER_LIMIT_S:.0f} s") from None
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
            raise error if isinstance(error, PhoneError) else PhoneError(str(error) or type(error).__name__) from None
        finally:
            if writer is not None:
                writer.close()

    def _head(self, method: str, path: str, body: bytes | None, more: Headers) -> bytes:
        headers = {"Host": self._netloc, "Connection": "close", "Origin": self._origin, "Sec-Fetch-Site": "same-origin", **more}
        if self._cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        if body is not None:
            headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{method} {self._path}{path} HTTP/1.1\r\n{lines}\r\n".encode()

    def _told(self, head: bytes) -> tuple[int, Headers]:
        first, *lines = head.decode("latin-1").split("\r\n")
        headers: Headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            if name.lower() == "set-cookie":
                self._cookies |= {key: morsel.value for key, morsel in SimpleCookie(value.strip()).items()}
            headers[name.lower()] = value.strip()
        return int(first.split(" ")[1]), headers


async def _body(headers: Headers, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """What follows the head, in pieces as they come."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            yield await reader.readexactly(size)
            await reader.readexactly(2)
    elif "content-length" in headers:
        yield await reader.readexactly(min(int(headers["content-length"]), LONGEST_BODY))
    else:
        while piece := await reader.read(65_536):
            yield piece


def _event(text: str) -> Event | None:
    """None for a comment, and for what has no data."""
    fields: dict[str, list[str]] = {}
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        fields.setdefault(name, []).append(value.removeprefix(" "))
    if "data" not in fields:
        return None
    return Event(name=fields.get("event", ["message"])[-1], id=fields.get("id", [""])[-1], data="\n".join(fields["data"]))
