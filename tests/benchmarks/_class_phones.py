"""Many phones of one class in one process: the load side of the class benchmark.

`python _class_phones.py PORT CODE` reads one JSON command a line and answers each with one JSON line, at the end of its input it ends:

    {"do": "join", "count": 300}                                  everyone at one moment: page, its files, join, stream, first view
    {"do": "follow", "count": 700}                                the same without page and files
    {"do": "vote", "round": "first", "within_s": 10, "drop": 0.3} each at a random moment, that share losing the line in mid-vote
    {"do": "ticks"}                                               when each tick reached each phone, since the last time

A phone follows the stream, comes back when it ends, and sends a vote until it is acknowledged: by the answer to it, or by seeing it in its
own view. Now and then it says that it is there. Plain sockets under asyncio: the client must not be what is measured. Times are
CLOCK_MONOTONIC.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
import sys
import time
from array import array
from dataclasses import dataclass, field
from typing import Any

TICK = re.compile(rb"id: [^\n]{1,80}\.(\d+)\nevent: tick\n")
ROUND = re.compile(rb'"round":(null|"\w+")')
ASSET = re.compile(r'(?:src|href)="([^"]*class-assets/[^"]+)"')
LATER = re.compile(r'data-lanes(?:-style)?="([^"]+)"')
COOKIE = re.compile(rb"(?i)set-cookie: (shardlab_participant=[^;\r]+)")
ANSWER_LIMIT_S = 10.0
AGAIN_S = 1.0
SIGN_EVERY_S, SIGN_SPREAD_S = 14.0, 5.0
"""As in pages/classroom/phone/sign.js."""
OPTIONS = 4
JOIN_LIMIT_S = 120.0
VOTE_LIMIT_S = 120.0


@dataclass
class Ticks:
    """Arrivals of all phones together."""

    ids: array[int] = field(default_factory=lambda: array("q"))
    times: array[float] = field(default_factory=lambda: array("d"))


class Feed(asyncio.Protocol):
    """One event stream."""

    def __init__(self, phone: Phone) -> None:
        self._phone = phone
        self._left = b""
        self.over = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._phone.request("GET", f"/live?class={self._phone.code}", accept="text/event-stream"))

    def data_received(self, data: bytes) -> None:
        now_s = time.monotonic()
        data = self._left + data
        end = data.rfind(b"\n\n") + 2
        if end < 2:
            self._left = data
            return
        self._left = data[end:]
        for found in TICK.finditer(data, 0, end):
            self._phone.ticks.ids.append(int(found[1]))
            self._phone.ticks.times.append(now_s)
        self._phone.hear(now_s)
        at = data.rfind(b"event: class\n", 0, end)
        if at >= 0:
            self._phone.saw(data[at:end])

    def connection_lost(self, _: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)


class Phone:
    """One participant."""

    def __init__(self, port: int, code: str, ticks: Ticks, luck: random.Random) -> None:
        self.code, self.ticks, self._port, self._luck = code, ticks, port, luck
        self.cookie = b""
        self.received = 0
        self.came_back = 0
        self._voting: str | None = None
        self._seen, self._changed = asyncio.Event(), asyncio.Event()
        self._feed: Feed | None = None
        self._following: asyncio.Task[None] | None = None
        self._later: list[str] = []
        """Files that a phone asks for with the first run."""
        self._asking: asyncio.Task[None] | None = None
        self._signing: asyncio.Task[None] | None = None
        self._signed_s = -SIGN_EVERY_S
        self._sign_after_s = luck.uniform(0, SIGN_SPREAD_S)

    def request(self, method: str, path: str, *, accept: str = "*/*", body: bytes = b"") -> bytes:
        cookie = b"Cookie: " + self.cookie + b"\r\n" if self.cookie else b""
        type_ = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if method == "POST" else ""
        close = "" if accept == "text/event-stream" else "Connection: close\r\n"
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAccept: {accept}\r\nAccept-Encoding: gzip\r\n{close}{type_}"
        return head.encode() + cookie + b"\r\n" + body

    async def ask(self, method: str, path: str, body: bytes = b"", *, hang_up: bool = False) -> tuple[int, bytes]:
        """(status, body) of an answer; (0, nothing) where there is none, or where one does not wait for it."""
        try:
            async with asyncio.timeout(ANSWER_LIMIT_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                try:
                    writer.write(self.request(method, path, accept="*/*", body=body))
                    if hang_up:
                        await writer.drain()
                        writer.transport.abort()
                        return 0, b""
                    head, _, rest = (await reader.read(-1)).partition(b"\r\n\r\n")
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return 0, b""
        self.received += len(head) + len(rest)
        found = COOKIE.search(head)
        if found:
            self.cookie = found[1]
        return (int(head.split()[1]), rest) if head else (0, b"")

    async def join(self, *, with_page: bool) -> float:
        """Seconds until the first view is there."""
        began_s = time.monotonic()
        if with_page:
            _, page = await self.ask("GET", f"/c/{self.code}")
            await self._files(page)
        while (await self.ask("POST", f"/c/{self.code}/join", b"{}"))[0] != 200:
            await asyncio.sleep(AGAIN_S)
        self._following = asyncio.create_task(self._follow())
        await asyncio.wait_for(self._seen.wait(), JOIN_LIMIT_S)
        return time.monotonic() - began_s

    async def _files(self, page: bytes) -> None:
        html = _unpacked(page).decode("utf-8", "replace")
        self._later = LATER.findall(html)
        await self._fetch(ASSET.findall(html))

    async def _fetch(self, paths: list[str]) -> None:
        for path in dict.fromkeys(paths):
            status, _ = await self.ask("GET", "/" + path.lstrip("./"))
            if status != 200:
                raise RuntimeError(f"{path} was answered with {status}")

    async def _follow(self) -> None:
        """The stream, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                _, self._feed = await loop.create_connection(lambda: Feed(self), "127.0.0.1", self._port)
                await self._feed.over
            except OSError:
                pass
            self.came_back += 1
            await asyncio.sleep(self._luck.uniform(AGAIN_S, 2 * AGAIN_S))

    def hear(self, now_s: float) -> None:
        """Something came: now and then it is answered with a sign of life, each phone at its own moment."""
        if now_s - self._signed_s >= SIGN_EVERY_S:
            self._signed_s = now_s
            self._signing = asyncio.create_task(self._sign())

    async def _sign(self) -> None:
        await asyncio.sleep(self._sign_after_s)
        await self.ask("POST", f"/c/{self.code}/here", b"{}")

    def saw(self, event: bytes) -> None:
        found = ROUND.search(event)
        self._voting = None if found is None or found[1] == b"null" else found[1].decode().strip('"')
        if self._later and b'"run":{' in event:
            self._asking = asyncio.create_task(self._fetch(self._later))
            self._later = []
        self._seen.set()
        self._changed.set()

    async def vote(self, round_: str, item_no: int, options: list[str], within_s: float, *, drop: bool) -> dict[str, Any]:
        """One vote, and what came of it; where the line drops, the first sending is never answered."""
        while self._voting != round_:
            self._changed.clear()
            await self._changed.wait()
        shown_s = time.monotonic()
        await asyncio.sleep(self._luck.uniform(0, within_s))
        choice = self._luck.choice(options)
        body = json.dumps({"round": round_, "item_no": item_no, "choice": choice}).encode()
        sends = 0
        if drop:
            sends += 1
            await self.ask("POST", f"/c/{self.code}/vote", body, hang_up=True)
            if self._feed is not None and self._feed.transport is not None:
                self._feed.transport.abort()
            await asyncio.sleep(self._luck.uniform(0.5, 3.0))
            if await self._own(round_) == choice:  # it had arrived: the phone shows it as sent and does not send again
                return {"choice": choice, "took_s": None, "sends": sends, "shown_s": shown_s}
        while True:
            sends += 1
            began_s = time.monotonic()
            status, _ = await self.ask("POST", f"/c/{self.code}/vote", body)
            if status == 200:
                return {"choice": choice, "took_s": time.monotonic() - began_s, "sends": sends, "shown_s": shown_s}
            if status == 409:
                return {"choice": None, "took_s": None, "sends": sends, "shown_s": shown_s}
            await asyncio.sleep(AGAIN_S)

    async def _own(self, round_: str) -> str | None:
        status, body = await self.ask("GET", f"/c/{self.code}/view")
        if status != 200:
            return None
        view = json.loads(_unpacked(body))
        found = view["me"]["votes"].get(round_)
        return found if isinstance(found, str) else None


def _unpacked(body: bytes) -> bytes:
    return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body


class Crowd:
    def __init__(self, port: int, code: str) -> None:
        self._port, self._code = port, code
        self._phones: list[Phone] = []
        self._ticks = Ticks()
        self._luck = random.Random(5)

    async def obey(self, command: dict[str, Any]) -> dict[str, Any]:
        match command["do"]:
            case "join" | "follow":
                return await self._join(command["count"], with_page=command["do"] == "join")
            case "vote":
                return await self._vote(command)
            case "ticks":
                found = {"ids": self._ticks.ids.tolist(), "times": self._ticks.times.tolist()}
                self._ticks.ids, self._ticks.times = array("q"), array("d")
                return found
        raise ValueError(f"do={command['do']!r}")

    async def _join(self, count: int, *, with_page: bool) -> dict[str, Any]:
        phones = [Phone(self._port, self._code, self._ticks, random.Random(self._luck.random())) for _ in range(count)]
        self._phones += phones
        began_s = time.monotonic()
        took_s = await asyncio.gather(*(phone.join(with_page=with_page) for phone in phones))
        return {"took_s": sorted(took_s), "all_s": time.monotonic() - began_s, "bytes": sum(phone.received for phone in phones) / count}

    async def _vote(self, command: dict[str, Any]) -> dict[str, Any]:
        voters = self._phones[: command["voters"]]
        dropped = set(self._luck.sample(range(len(voters)), round(command.get("drop", 0.0) * len(voters))))
        before = sum(phone.came_back for phone in self._phones)
        found = await asyncio.wait_for(asyncio.gather(*(
            phone.vote(command["round"], command["item_no"], command["options"], command["within_s"], drop=number in dropped)
            for number, phone in enumerate(voters)
        )), VOTE_LIMIT_S)  # fmt: skip
        return {
            "acknowledged": {phone.cookie.partition(b"=")[2].decode(): each["choice"] for phone, each in zip(voters, found, strict=True)},
            "took_s": sorted(each["took_s"] for each in found if each["took_s"] is not None),
            "all_s": time.monotonic() - min(each["shown_s"] for each in found),
            "sends": sum(each["sends"] for each in found),
            "came_back": sum(phone.came_back for phone in self._phones) - before,
        }


async def main() -> None:
    crowd = Crowd(int(sys.argv[1]), sys.argv[2])
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await crowd.obey(json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
