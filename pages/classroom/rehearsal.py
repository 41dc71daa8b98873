"""A rehearsal: simulated participants who join a class as phones do, vote, vote again, predict and watch.

They come over HTTP by the address that phones are given, so that a proxy, a firewall or a limit in between shows itself before the class
does. Owns their lives and what they met with; one rehearsal per class. The class they are in is one of its own, which the page deletes
afterwards: nothing of it can count. Must not read the class's store.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import threading
import time
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any

from pages.classroom.bot_client import Phone, PhoneError
from pages.classroom.habits import UNDECIDED, Lean, choose, thinking_s

PARTICIPANTS = 30
LIMIT_S = 3_600.0
"""Whoever forgets a rehearsal does not find it running the next day."""
ARRIVING_S = 5.0
RETRY_S = 1.0
SIGN_EVERY_S = 14.0
"""As phones do: see phone/sign.js."""
TRIES = 5
GONE = (401, 403, 404, 410)
"""Who is answered so has nothing to come back for."""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What the simulated participants met with so far."""

    wanted: int = 0
    joined: int = 0
    following: int = 0
    """Event streams that are open now."""
    votes: int = 0
    """Acknowledged ones, changes included."""
    refused: int = 0
    """Votes that came after the end of the vote, as with people."""
    pictures: int = 0
    """Samples of runs that arrived, all participants together."""
    slowest_ms: float | None = None
    """From a vote to its acknowledgement."""
    fault: str = ""
    """What went wrong last."""
    faults: int = 0


class Rehearsal:
    """Simulated participants of one class, in a thread of their own."""

    def __init__(
        self, base: str, code: str, *, lean: Lean | None = None, count: int = PARTICIPANTS, seed: int = 0, hurry: float = 1.0
    ) -> None:
        """`base`: where the server is reached. `hurry` divides the time they take to arrive and to think."""
        self.code = code
        self._base, self._lean, self._count, self._seed, self._hurry = base, lean or Lean(), count, seed, hurry
        self._lock = threading.Lock()
        self._tally = Tally(wanted=count)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._all: asyncio.Task[None] | None = None
        self._over = False
        self._thread = threading.Thread(target=self._run, name=f"rehearsal {code}", daemon=True)
        self._thread.start()

    @property
    def tally(self) -> Tally:
        return self._tally

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def stop(self, wait_s: float = 5.0) -> None:
        """They all leave."""
        with self._lock:
            self._over, loop, everybody = True, self._loop, self._all
        if loop is not None and everybody is not None and not loop.is_closed():
            loop.call_soon_threadsafe(everybody.cancel)
        self._thread.join(wait_s)

    def count(self, **more: int) -> None:
        """Add to the tally; from the rehearsal's own thread only, as `note`."""
        self._tally = replace(self._tally, **{name: getattr(self._tally, name) + number for name, number in more.items()})

    def note(self, *, fault: str | None = None, vote_ms: float = 0.0) -> None:
        """A fault, or how long a vote took."""
        tally = self._tally
        if fault is not None:
            self._tally = replace(tally, fault=fault, faults=tally.faults + 1)
        else:
            self._tally = replace(tally, votes=tally.votes + 1, slowest_ms=max(vote_ms, tally.slowest_ms or 0.0))

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        finally:
            self._tally = replace(self._tally, following=0)

    async def _live(self) -> None:
        with self._lock:
            if self._over:
                return
            self._loop, self._all = asyncio.get_running_loop(), asyncio.current_task()
        luck = random.Random(self._seed)
        people = [
            _Participant(self, Phone(self._base), number + 1, random.Random(luck.random()), self._lean, self._hurry)
            for number in range(self._count)
        ]
        try:
            async with asyncio.timeout(LIMIT_S):
                await asyncio.gather(*(person.live() for person in people))
        except (TimeoutError, asyncio.CancelledError):
            return


class _Participant:
    """One of them."""

    def __init__(self, rehearsal: Rehearsal, phone: Phone, number: int, luck: random.Random, lean: Lean, hurry: float) -> None:
        self._rehearsal, self._phone, self._number, self._luck, self._lean, self._hurry = rehearsal, phone, number, luck, lean, hurry
        self._answered: set[tuple[int, str]] = set()
        self._first: dict[int, str] = {}
        self._doing: set[asyncio.Task[None]] = set()
        self._last_id = ""
        self._sign_s = -SIGN_EVERY_S

    async def live(self) -> None:
        """Arrive, join, then follow the class until it has ended or is gone."""
        await asyncio.sleep(self._luck.uniform(0, ARRIVING_S) / self._hurry)
        if not await self._join():
            return
        try:
            while await self._follow():
                await asyncio.sleep(RETRY_S / self._hurry)
        finally:
            for task in self._doing:
                task.cancel()

    async def _join(self) -> bool:
        for _ in range(TRIES):
            status, answer = await self._post("join", {"nickname": f"Simulated {self._number:02}"})
            if status == 200:
                self._rehearsal.count(joined=1)
                return True
            if status:
                self._went_wrong(f"joining was answered with {status} {answer.get('words', '')}".strip())
            if status in GONE:
                return False
            await asyncio.sleep(RETRY_S / self._hurry)
        return False

    async def _follow(self) -> bool:
        """Until the stream ends; whether there is a reason to come back."""
        self._rehearsal.count(following=1)
        try:
            async with contextlib.aclosing(self._phone.events(f"/live?class={self._rehearsal.code}", self._last_id)) as events:
                async for event in events:
                    self._last_id = event.id or self._last_id
                    self._give_sign()
                    if event.name == "class":
                        view = json.loads(event.data)
                        if view.get("state") == "ended":
                            return False
                        self._consider(view)
                    elif event.name == "tick":
                        self._rehearsal.count(pictures=1)
        except PhoneError as error:
            self._went_wrong(f"following: {error}")
            return error.status not in GONE
        finally:
            self._rehearsal.count(following=-1)
        return True

    def _give_sign(self) -> None:
        """Now and then, that this one is there."""
        now_s = time.monotonic()
        if now_s - self._sign_s >= SIGN_EVERY_S:
            self._sign_s = now_s
            self._begin(self._sign())

    async def _sign(self) -> None:
        await asyncio.sleep(self._luck.uniform(0, SIGN_EVERY_S / 3))
        await self._post("here", {})

    def _begin(self, doing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(doing)
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)

    def _consider(self, view: dict[str, Any]) -> None:
        """Begin to think about what can be voted on now, once."""
        item, voting = view.get("item"), view.get("round")
        if not item or not voting or not view.get("may_vote", True) or (item["no"], voting) in self._answered:
            return
        asked = (view.get("predict") or {}).get("choices", ()) if voting == "predict" else item["options"]
        choices = [choice["id"] for choice in asked]
        if not choices:
            return
        self._answered.add((item["no"], voting))
        self._begin(self._vote(int(item["no"]), str(voting), choices))

    async def _vote(self, item_no: int, voting: str, choices: list[str]) -> None:
        """Once, and for the undecided a second time."""
        for _ in range(2 if self._luck.random() < UNDECIDED else 1):
            await asyncio.sleep(thinking_s(self._luck) / self._hurry)
            choice = choose(self._luck, choices, item_no=item_no, round=voting, first=self._first.get(item_no), lean=self._lean)
            if not await self._send({"round": voting, "item_no": item_no, "choice": choice}):
                return
            if voting == "first":
                self._first[item_no] = choice

    async def _send(self, vote: dict[str, Any]) -> bool:
        """Until it is acknowledged or refused; whether it was acknowledged."""
        for _ in range(TRIES):
            began_s = time.perf_counter()
            status, answer = await self._post("vote", vote)
            if status == 200:
                self._rehearsal.note(vote_ms=1000 * (time.perf_counter() - began_s))
                return True
            if status == 409:
                self._rehearsal.count(refused=1)
                return False
            if status:
                self._went_wrong(f"a vote was answered with {status} {answer.get('words', '')}".strip())
            await asyncio.sleep(RETRY_S / self._hurry)
        return False

    async def _post(self, what: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """(0, nothing) where the server could not be reached."""
        try:
            return await self._phone.post(f"/c/{self._rehearsal.code}/{what}", body)
        except PhoneError as error:
            self._went_wrong(str(error))
            return 0, {}

    def _went_wrong(self, words: str) -> None:
        self._rehearsal.note(fault=words)


_rehearsals: dict[str, Rehearsal] = {}
_lock = threading.Lock()


def begin(base: str, code: str, *, lean: Lean | None = None) -> Rehearsal:
    """Send simulated participants into the class with this code; those who are there already stay."""
    with _lock:
        rehearsal = _rehearsals.get(code)
        if rehearsal is None or not rehearsal.running:
            rehearsal = _rehearsals[code] = Rehearsal(base, code, lean=lean, seed=random.randrange(2**32))
        return rehearsal


def rehearsal_of(code: str) -> Rehearsal | None:
    """The rehearsal of a class, running or over."""
    return _rehearsals.get(code)


def end(code: str) -> None:
    """They leave; what they met with is forgotten."""
    with _lock:
        rehearsal = _rehearsals.pop(code, None)
    if rehearsal is not None:
        rehearsal.stop()


def end_all() -> None:
    """At the end of the server."""
    for code in list(_rehearsals):
        end(code)
