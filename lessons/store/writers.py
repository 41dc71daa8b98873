"""The writers of one process on SQLite, which allows one at a time: they take turns, and those who wait share a commit.

A commit waits for the disk; a room that answers at once would wait three hundred times. So a writer that is done while others wait leaves
the transaction open for the next one, and whoever is the last of the batch commits for all. Each has a savepoint of its own: one that fails
takes nobody with it. Nobody returns before the commit, so that what is acknowledged is on the disk. Owns turns and batches.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from lessons.store.faults import BUSY, LOST, StoreError, store_error

LARGEST_BATCH = 32
LOOK_EVERY_S = 0.005
"""How often a writer that waits for its batch looks whether anybody is left to commit it."""


@dataclass(kw_only=True, eq=False)
class _Batch:
    """One transaction of several writers."""

    connection: Connection
    members: int = 0
    error: StoreError | None = None
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def whole(self) -> bool:
        """False where SQLite has given up the whole transaction, as it does when the disk is full."""
        return bool(getattr(self.connection.connection.driver_connection, "in_transaction", False))


class Writers:
    """Hands out turns. Thread-safe."""

    def __init__(self, engine: Engine, *, busy_limit_s: float) -> None:
        """`engine` begins its transactions with BEGIN IMMEDIATE."""
        self._engine = engine
        self._busy_limit_s = busy_limit_s
        self._turn = threading.Lock()
        self._count = threading.Lock()
        self._waiting = 0
        self._open: _Batch | None = None
        """Left by the writer before for the next one; only looked at by who has the turn."""

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One writer's part of a transaction, committed when the block is left. Raises StoreError."""
        batch = self._join()
        try:
            with _turns:
                yield from self._part(batch)
        except BaseException as error:
            self._leave(batch, error)
            raise
        self._leave(batch)
        while not batch.done.wait(LOOK_EVERY_S):
            if self._turn.acquire(blocking=False):  # who was to commit has given up waiting
                if self._open is batch:
                    self._commit(batch)
                self._turn.release()
        if batch.error is not None:
            raise batch.error

    def _join(self) -> _Batch:
        """Wait for the turn; then the batch that was left open, or a new one."""
        with self._count:
            self._waiting += 1
        took = self._turn.acquire(timeout=self._busy_limit_s)
        with self._count:
            self._waiting -= 1
        if not took:
            raise StoreError(BUSY)
        batch, self._open = self._open, None
        if batch is None:
            try:
                batch = _Batch(connection=self._engine.connect())
                batch.connection.begin()
            except SQLAlchemyError as error:
                if batch is not None:
                    batch.connection.close()
                self._turn.release()
                raise store_error(error) from error
        batch.members += 1
        return batch

    def _part(self, batch: _Batch) -> Iterator[Connection]:
        run = batch.connection.exec_driver_sql
        try:
            run("SAVEPOINT part")
            try:
                yield batch.connection
            except BaseException:
                if batch.whole:
                    run("ROLLBACK TO part")
                    run("RELEASE part")
                raise
            run("RELEASE part")
        except SQLAlchemyError as error:
            raise store_error(error) from error

    def _leave(self, batch: _Batch, error: BaseException | None = None) -> None:
        """Give the turn to the next one: with the batch where there is one who waits, else commit it."""
        with self._count:
            others = self._waiting > 0
        if not batch.whole:
            self._end(batch, error if isinstance(error, StoreError) else StoreError(LOST))
        elif others and batch.members < LARGEST_BATCH:
            self._open = batch
        else:
            self._commit(batch)
        self._turn.release()

    def _commit(self, batch: _Batch) -> None:
        error: StoreError | None = None
        try:
            if batch.whole:
                batch.connection.commit()
            else:
                error = StoreError(LOST)
        except SQLAlchemyError as failure:
            error = store_error(failure)
        self._end(batch, error)

    def _end(self, batch: _Batch, error: StoreError | None) -> None:
        self._open = None
        batch.error = error
        try:
            batch.connection.close()  # what is not committed is rolled back
        except SQLAlchemyError as failure:
            batch.error = batch.error or store_error(failure)
        batch.done.set()


class _Turns:
    """Threads give way to one another every 0.1 ms instead of every 5 ms, while a writer has the turn.

    Each of its statements lets go of the interpreter and then waits to get it back; with a room full of pages being drawn, twenty such
    waits of 5 ms and more within one turn made writers queue for seconds.
    """

    TURN_S = 0.0001

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._usual_s = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._usual_s = sys.getswitchinterval()
                sys.setswitchinterval(min(self.TURN_S, self._usual_s))
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                sys.setswitchinterval(self._usual_s)


_turns = _Turns()
