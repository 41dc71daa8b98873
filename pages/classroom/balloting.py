"""Votes on their way to the store: one after the other for each participant, hundreds at once for a room.

A phone that gives up waiting sends again, and may have another choice by then: the older request must not be carried out after the newer
one. Owns that order, how long an answer may take, and telling the instructor when votes cannot be kept. What a vote is belongs to
`lessons.classroom`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from lessons.classroom import Classroom, Receipt, VoteClosedError
from lessons.store import StoreError
from pages.classroom.door import Refusal

THREADS = 24
"""Writers that wait for the store together share a commit (`lessons.store.writers`)."""
ANSWER_LIMIT_S = 6.0
"""Before a phone loses patience; what is under way then may still be recorded, and is acknowledged when it is sent again."""
WAITING_LIMIT = 4_000
TELL_AFTER_S = 2.0
"""How long a vote may wait before the console says so."""
STUCK = (
    "Votes cannot be recorded just now: the store does not answer. Phones say “not sent yet” and send them again by themselves. "
    "Wait, and leave the vote open; nothing that was marked as sent is lost."
)
FLOWING = "Votes are recorded again."

Cast = tuple[Receipt, dict[str, Any]]
"""What a vote is acknowledged with, and what the participant sees of their own now."""


@dataclass(kw_only=True, eq=False)
class _Turn:
    """The requests of one participant that are under way."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    latest: int = 0
    waiting: int = 0


class Ballots:
    """Lives in one event loop."""

    def __init__(self, classroom: Callable[[], Classroom]) -> None:
        self._classroom = classroom
        self._threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="vote")
        self._turns: dict[tuple[str, str], _Turn] = {}
        self._waiting = 0
        self._stuck: set[str] = set()
        """Classes whose instructor was told."""
        self._telling = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vote-tell")

    async def cast(self, code: str, token: str, *, round: str, choice: str, item_no: int) -> Cast:
        """Acknowledged only after it is in the store. Raises what the class refuses, and Refusal where it takes too long."""
        if self._waiting >= WAITING_LIMIT:
            raise _busy()
        turn = self._turns.setdefault((code, token), _Turn())
        turn.latest += 1
        turn.waiting += 1
        self._waiting += 1
        number = turn.latest
        casting = asyncio.ensure_future(self._in_turn(turn, number, (code, token), round, choice, item_no))
        patience = asyncio.get_running_loop().call_later(TELL_AFTER_S, self._tell, code, True)
        try:
            cast = await asyncio.wait_for(asyncio.shield(casting), ANSWER_LIMIT_S)
        except TimeoutError:
            casting.add_done_callback(lambda late: late.cancelled() or late.exception())
            raise _busy() from None
        except StoreError:
            self._tell(code, True)
            raise
        except VoteClosedError:
            self._tell(code, False)  # the store said so
            raise
        finally:
            patience.cancel()
        self._tell(code, False)
        return cast

    def _tell(self, code: str, stuck: bool) -> None:
        """The instructor, once when votes stop being kept and once when they are again. The store is not asked to keep that."""
        if stuck is (code in self._stuck):
            return
        self._stuck ^= {code}
        self._telling.submit(self._note, code, stuck)

    def _note(self, code: str, stuck: bool) -> None:
        with contextlib.suppress(LookupError):  # the class is gone
            self._classroom().note(code, STUCK if stuck else FLOWING, "bad" if stuck else "good", stored=False)

    async def _in_turn(self, turn: _Turn, number: int, key: tuple[str, str], round: str, choice: str, item_no: int) -> Cast:
        try:
            async with turn.lock:
                if number != turn.latest:
                    raise Refusal(409, "superseded", "A later vote of yours came in.")
                return await asyncio.get_running_loop().run_in_executor(self._threads, self._cast, key, round, choice, item_no)
        finally:
            turn.waiting -= 1
            self._waiting -= 1
            if not turn.waiting:
                self._turns.pop(key, None)

    def _cast(self, key: tuple[str, str], round: str, choice: str, item_no: int) -> Cast:
        code, token = key
        classroom = self._classroom()
        receipt = classroom.vote(code, token, round=round, choice=choice, item_no=item_no)
        return receipt, classroom.audience_me(code, token)


def _busy() -> Refusal:
    return Refusal(503, "busy", "Votes are coming in faster than they can be kept. Yours is sent again in a moment.", retry_s=1)
