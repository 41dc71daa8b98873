"""One engine for everything: how connections are made, and what a transaction is on SQLite and on PostgreSQL.

On SQLite one writer at a time is a rule of the database: writers of this process take turns in `lessons.store.writers`, not in SQLite's
busy handler, which sleeps ever longer and lets late comers pass. Owns engine and transactions; must not know a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import InvalidatePoolError, SQLAlchemyError

from lessons.store.faults import StoreError, store_error
from lessons.store.migrate import migrate
from lessons.store.writers import Writers

STORE_FILE = "shardlab.db"
BUSY_LIMIT_S = 10.0
"""How long a learner waits for the store before being told that it is busy: a room that answers at once gets through."""
CONNECTIONS = 8
"""Kept open to the database; as many again for a rush. Everybody else waits for one."""
PATIENCE = {"connect_timeout": 5, "tcp_user_timeout": 10_000, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
"""libpq's, in seconds and milliseconds: a database whose machine is gone says nothing, and by itself TCP waits for a quarter of an hour."""


class Store:
    """A database whose tables are as this version of the code expects them. Thread-safe. Made by `open_store`."""

    def __init__(self, engine: Engine, *, busy_limit_s: float) -> None:
        self.dialect = engine.dialect.name
        """`sqlite` or `postgresql`."""
        self._engine = engine
        immediate = engine.execution_options(shardlab_begin="BEGIN IMMEDIATE")
        self._writers = Writers(immediate, busy_limit_s=busy_limit_s) if self.dialect == "sqlite" else None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent view of the database. Every failure becomes a StoreError that a person can read."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise store_error(error) from error

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Commits on leaving: after the block the change is on the disk, or a StoreError says that it is not."""
        if self._writers is not None:
            with self._writers.write() as connection:
                yield connection
            return
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise store_error(error) from error

    def close(self) -> None:
        self._engine.dispose()


def open_store(data_dir: Path, database_url: str = "", *, busy_limit_s: float = BUSY_LIMIT_S) -> Store:
    """The store of a data folder, or of a PostgreSQL database; its tables are brought up to date first, by one process at a time.

    Raises StoreError where it cannot be opened, is damaged, or was written by a newer version.
    """
    engine = _postgresql(database_url, busy_limit_s) if database_url else _sqlite(data_dir, busy_limit_s)
    try:
        migrate(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        raise store_error(error) from error
    except StoreError:
        engine.dispose()
        raise
    return Store(engine, busy_limit_s=busy_limit_s)


def _sqlite(data_dir: Path, busy_limit_s: float) -> Engine:
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"The folder {data_dir} cannot be made: {error.strerror}.") from None
    file = data_dir / STORE_FILE
    engine = create_engine(
        f"sqlite:///{file}", connect_args={"timeout": busy_limit_s, "check_same_thread": False},
        pool_size=CONNECTIONS, max_overflow=CONNECTIONS, pool_timeout=busy_limit_s,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # `begin` below says when a transaction begins, not the driver
        # FULL: in WAL mode a commit is on the disk when it returns; NORMAL could lose the last answers in a power cut.
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
        record.info["file"] = _identity(file)

    @event.listens_for(engine, "checkout")
    def look(_: object, record: Any, __: object) -> None:
        # A backup moved into place leaves connections at the file that is gone, where what is acknowledged would be lost with them.
        if record.info["file"] != _identity(file):
            raise InvalidatePoolError

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A writer takes the lock at once: one that began by reading may be refused it without waiting.
        connection.exec_driver_sql(connection.get_execution_options().get("shardlab_begin", "BEGIN"))

    return engine


def _identity(file: Path) -> tuple[int, int] | None:
    """Which file this is, whatever it is called; None where there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _postgresql(database_url: str, busy_limit_s: float) -> Engine:
    import psycopg  # its C library need not be loaded where SQLite serves

    # on: a commit is on the disk when it returns, whatever is the default of the database.
    limits = f"-c synchronous_commit=on -c lock_timeout={round(busy_limit_s * 1000)} -c statement_timeout={round(4 * busy_limit_s * 1000)}"
    url = make_url(database_url).set(drivername="postgresql+psycopg")
    return create_engine(
        url, module=psycopg, connect_args={"options": limits, "application_name": "shardlab", **PATIENCE},
        pool_size=CONNECTIONS, max_overflow=CONNECTIONS, pool_timeout=busy_limit_s, pool_pre_ping=True,
    )
