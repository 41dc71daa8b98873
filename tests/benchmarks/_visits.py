"""Visits without a browser: the page, its files over six connections as a browser has, then a Streamlit session, up to its first page.

The client is a few lines over plain sockets, so that on two cores it is the server that is measured. Owns what a visit asks for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

CONNECTIONS = 6
"""A browser's limit per origin under HTTP/1.1."""
LIMIT_S = 120.0


@dataclass(frozen=True, kw_only=True)
class Address:
    """What a visitor opens: `/lesson?lesson=ID` is page `lesson` with the query `lesson=ID`."""

    page: str = ""
    query: str = ""

    @property
    def path(self) -> str:
        return f"/{self.page}" + (f"?{self.query}" if self.query else "")


class _Connection:
    """One kept-alive HTTP connection."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def get(self, path: str, *, accept: str = "*/*", cookies: str = "") -> tuple[list[bytes], int]:
        """(lines of the header, bytes of the body) of an answer; raises RuntimeError for anything but 200."""
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        cookie = f"Cookie: {cookies}\r\n" if cookies else ""
        self._writer.write(
            f"GET {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nConnection: keep-alive\r\nAccept: {accept}\r\n"
            f"Accept-Encoding: gzip, deflate, br, zstd\r\n{cookie}\r\n".encode()
        )
        lines = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        if lines[0].split()[1] != b"200":
            raise RuntimeError(f"{path} was answered {lines[0].decode()}")
        head = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])}
        if b"content-length" in head:
            return lines, len(await self._reader.readexactly(int(head[b"content-length"])))
        return lines, await self._chunks()

    async def _chunks(self) -> int:
        assert self._reader is not None
        total = 0
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            await self._reader.readexactly(size + 2)
            total += size
        await self._reader.readexactly(2)
        return total

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class Visitor:
    """One browser. `open` is a whole visit; its parts can be called by themselves."""

    def __init__(self, url: str, address: Address) -> None:
        self._url, self._address = url, address
        parts = urlsplit(url)
        self._connections = [_Connection(str(parts.hostname), int(parts.port or 80)) for _ in range(CONNECTIONS)]
        self._cookies = ""
        self._session: websockets.ClientConnection | None = None
        self.received = 0

    async def open(self, files: Sequence[str]) -> None:
        """Page, files, session."""
        await self.fetch_page()
        await self.fetch(files)
        await self.join()

    async def fetch_page(self) -> None:
        """The HTML; what it sets as cookies is sent from then on."""
        lines, size = await self._connections[0].get(self._address.path, accept="text/html,*/*;q=0.8", cookies=self._cookies)
        self.received += size
        set_ = [line.partition(b":")[2].decode().strip() for line in lines if line.lower().startswith(b"set-cookie:")]
        self._cookies = "; ".join(cookie.partition(";")[0] for cookie in set_) or self._cookies

    async def fetch(self, files: Sequence[str]) -> None:
        """All of `files`: each connection takes the next one as soon as it is free."""
        left: Iterable[str] = iter(files)

        async def take(connection: _Connection) -> None:
            for path in left:
                _, size = await connection.get(path, cookies=self._cookies)
                self.received += size

        await asyncio.gather(*(take(connection) for connection in self._connections))

    async def join(self) -> None:
        """Open the session and wait until its first script run has ended."""
        self._session = await websockets.connect(
            self._url.replace("http", "ws", 1) + "/_stcore/stream", subprotocols=[websockets.Subprotocol("streamlit")], max_size=None,
            open_timeout=LIMIT_S, ping_interval=None, close_timeout=1,
            additional_headers={"Cookie": self._cookies} if self._cookies else None,
        )
        state = ClientState(query_string=self._address.query, page_name=self._address.page)
        await self._session.send(BackMsg(rerun_script=state).SerializeToString())
        async with asyncio.timeout(LIMIT_S):
            async for data in self._session:
                assert isinstance(data, bytes)
                self.received += len(data)
                message = ForwardMsg.FromString(data)
                if message.WhichOneof("type") == "script_finished":
                    return
        raise RuntimeError("the server closed the session before its first page was complete")

    async def close(self) -> None:
        for connection in self._connections:
            connection.close()
        if self._session is not None:
            await self._session.close()


@asynccontextmanager
async def visitors(url: str, addresses: Sequence[Address]) -> AsyncIterator[list[Visitor]]:
    """One for each of `addresses`; what they hold open is closed at the end."""
    made = [Visitor(url, address) for address in addresses]
    try:
        yield made
    finally:
        await asyncio.gather(*(visitor.close() for visitor in made), return_exceptions=True)
