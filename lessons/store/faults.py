"""What a database says when it cannot, in words for the person in front of the page; the details go to the server's log.

Owns the mapping. A message never holds an address, a user or a password: PostgreSQL's own texts name them.
"""

from __future__ import annotations

import logging

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

log = logging.getLogger("shardlab.store")

BUSY = "The store is busy; nothing was saved. Please try again in a moment."
FULL = "The disk of the server is full; nothing was saved. Whoever runs the server has to make room."
READ_ONLY = "The store cannot be written; nothing was saved. Whoever runs the server has to check its data folder."
DAMAGED = "The store is damaged; nothing was saved. Whoever runs the server has to restore it from a backup."
TABLE_LOST = "The store has lost a table; nothing was saved. Whoever runs the server has to restore it from a backup."
AWAY = "The database cannot be reached just now. Please try again in a moment; nothing that was saved is lost."
REFUSED = "The database refuses the server's name or password. Whoever runs the server has to check SHARDLAB_DATABASE_URL."
NOT_THERE = "The database named in SHARDLAB_DATABASE_URL does not exist. Whoever runs the server has to create it."
LOST = "The store gave up in the middle; nothing was saved. Please try again in a moment."
OTHER = "The store failed; nothing was saved. Whoever runs the server finds the reason in its log."

_SQLITE: tuple[tuple[str, str], ...] = (
    ("locked", BUSY),
    ("full", FULL),
    ("readonly", READ_ONLY),
    ("unable to open", "The store cannot be opened. Whoever runs the server has to check its data folder."),
    ("malformed", DAMAGED),
    ("not a database", DAMAGED),
    ("no such table", TABLE_LOST),
    ("disk i/o", "The disk of the server failed; nothing was saved. Whoever runs the server has to look at it."),
)
"""A part of SQLite's message, in small letters, and what it means."""

_SQLSTATES: tuple[tuple[str, str], ...] = (
    ("55P03", BUSY), ("57014", BUSY), ("40", BUSY), ("53300", BUSY),
    ("53100", FULL),
    ("25006", READ_ONLY),
    ("42501", "The database does not let the server write; nothing was saved. Whoever runs the server has to grant it the rights."),
    ("XX001", DAMAGED), ("XX002", DAMAGED),
    ("42P01", TABLE_LOST), ("42703", TABLE_LOST),
    ("28", REFUSED),
    ("3D000", NOT_THERE),
    ("57P", AWAY), ("08", AWAY),
)
"""The beginning of a PostgreSQL error code (its documentation, appendix A), and what it means."""

_LIBPQ: tuple[tuple[str, str], ...] = (
    ("authentication failed", REFUSED), ("no password supplied", REFUSED), ("no pg_hba.conf entry", REFUSED), ("role ", REFUSED),
    ("does not exist", NOT_THERE),
)
"""A connection that never came about has no code. Everything not listed here is a server that cannot be reached."""


class StoreError(RuntimeError):
    """The store cannot do it now; the message says why, for the person in front of the page."""


def store_error(error: SQLAlchemyError) -> StoreError:
    """`error` in words. What is not expected to happen is logged in full."""
    if isinstance(error, PoolTimeout):
        return StoreError(BUSY)
    if not isinstance(error, DBAPIError):
        log.error("the store failed", exc_info=error)
        return StoreError(OTHER)
    message = _of_sqlite(str(error.orig)) if _is_sqlite(error) else _of_postgresql(error)
    if message is None:
        log.error("the store failed", exc_info=error)
    return StoreError(message or OTHER)


def _is_sqlite(error: DBAPIError) -> bool:
    return type(error.orig).__module__ == "sqlite3"


def _of_sqlite(text: str) -> str | None:
    return next((message for part, message in _SQLITE if part in text.lower()), None)


def _of_postgresql(error: DBAPIError) -> str | None:
    code = getattr(error.orig, "sqlstate", None)
    if code:
        return next((message for start, message in _SQLSTATES if str(code).startswith(start)), None)
    text = str(error.orig)
    if error.connection_invalidated or "connection" in text or "server closed" in text:
        log.warning("the database cannot be reached: %s", text.strip())
        return next((message for part, message in _LIBPQ if part in text), AWAY)
    return None
