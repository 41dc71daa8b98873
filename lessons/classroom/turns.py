"""Votes and whoever ends them: many votes are recorded at the same time, and none of them while the class is being changed.

SQLite has one writer anyway, whose turns are in `lessons.store.writers`. On PostgreSQL it is a lock of the class that is handed out in the
order in which it was asked for: by locks of the row, votes that keep coming would let an instructor wait for seconds. Owns these turns.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text

from lessons.store import Store, StoreError
from lessons.store.engine import BUSY_LIMIT_S, CONNECTIONS
from lessons.store.faults import BUSY

_SPACE = 0x5EA2D1AB - 2**31
"""Sets our locks of classes apart in a PostgreSQL database."""
_SHARED = text("SELECT pg_advisory_xact_lock_shared(:space, :class)")
_ALONE = text("SELECT pg_advisory_xact_lock(:space, :class)")


def together(connection: Connection, code: str) -> None:
    """Until the end of the transaction nobody changes this class; other votes go on. Before anything is read of it."""
    _wait(connection, code, _SHARED)


def alone(connection: Connection, code: str) -> None:
    """Until the end of the transaction no vote is recorded in this class, and nobody else changes it. Before anything is read of it."""
    _wait(connection, code, _ALONE)


def _wait(connection: Connection, code: str, lock: object) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(lock, {"space": _SPACE, "class": zlib.crc32(code.encode()) - 2**31})  # type: ignore[call-overload]


class Gate:
    """How many votes may be under way at once on PostgreSQL, so that connections are left for an instructor, for joins and for views.

    On SQLite none is held back: those who wait share a commit.
    """

    def __init__(self, store: Store) -> None:
        self._places = threading.BoundedSemaphore(CONNECTIONS) if store.dialect == "postgresql" else None

    @contextmanager
    def vote(self) -> Iterator[None]:
        """Raises StoreError where no place comes free in time."""
        if self._places is None:
            yield
            return
        if not self._places.acquire(timeout=BUSY_LIMIT_S):
            raise StoreError(BUSY)
        try:
            yield
        finally:
            self._places.release()
