"""Learners: random tokens and nothing else. A token is in the browser's cookie and in the link to continue elsewhere, never in the store.

The store keeps its SHA-256 only, so that whoever reads a backup cannot continue as somebody. There is no row before something is kept:
looking at pages leaves nothing behind. Owns tokens, export and deletion. Must not log or print a token.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from lessons.judgements import untold
from lessons.store import Store
from lessons.store.tables import attempts, cards, dead_tokens, judgements, learners, mysteries

TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")
"""192 random bits, written so that they stand in an address."""

EXPORTED: tuple[Table, ...] = (attempts, judgements, mysteries, cards)
"""Every table that holds something of a learner."""

EXPORT_FORMAT = "shardlab-learner-1"


class DeadToken(Exception):
    """What belonged to this token was deleted by its owner; nothing may be kept under it again."""

    def __init__(self) -> None:
        super().__init__("What belonged to this link was deleted. Reload the page to begin afresh.")


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(24)


def well_formed(token: str | None) -> bool:
    """Whether this may be a token at all."""
    return token is not None and TOKEN.fullmatch(token) is not None


class Learners:
    """All learners of one store. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, token: str | None) -> int | None:
        """The learner's number inside the store; None for a token under which nothing is kept (unknown, forged, deleted)."""
        if token is None or not well_formed(token):
            return None
        with self._store.read() as connection:
            return learner_id(connection, token)

    def known(self, token: str | None) -> bool:
        """Whether something is kept under this token: then its link leads somewhere."""
        return self.find(token) is not None

    def is_dead(self, token: str) -> bool:
        """Whether its owner had everything deleted: the browser then needs another one."""
        if not well_formed(token):
            return False
        with self._store.read() as connection:
            return _is_dead(connection, token)

    def export(self, token: str) -> dict[str, Any] | None:
        """Everything stored about this learner, as plain values for JSON; None for an unknown token.

        An attempt or mystery run that is not told yet is exported without what would give its answer away.
        """
        with self._store.read() as connection:
            found = learner_id(connection, token) if well_formed(token) else None
            if found is None:
                return None
            created_s = connection.execute(select(learners.c.created_s).where(learners.c.id == found)).scalar_one()
            rows = {table.name: _rows(connection, table, found) for table in EXPORTED}
            secret = untold(connection, found)
        rows["judgements"] = [row for row in rows["judgements"] if row["seen"]]
        for judged in rows["judgements"]:
            if judged["ref"] in secret:
                judged["cause"] = None
        for mystery in rows["mysteries"]:
            if mystery["stage"] != "graded":
                for name in ("cause", "config", "seed", "setting"):
                    mystery[name] = None
        return {"format": EXPORT_FORMAT, "exported_s": time.time(), "created_s": created_s, **rows}

    def delete(self, token: str) -> bool:
        """Everything of this learner is gone, and the token dead: nothing can be kept under it again. False for an unknown token."""
        if not well_formed(token):
            return False
        with self._store.write() as connection:
            found = learner_id(connection, token)
            if found is None:
                return False
            for table in EXPORTED:
                connection.execute(delete(table).where(table.c.learner_id == found))
            connection.execute(delete(learners).where(learners.c.id == found))
            insert_once(connection, dead_tokens, {"token_hash": hashed(token)})
        return True


_LEARNER = select(learners.c.id).where(learners.c.token_hash == bindparam("hash"))
"""Built once: it is asked on every page, and building a statement takes longer than SQLite takes to answer it."""


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def learner_id(connection: Connection, token: str) -> int | None:
    """The learner of this token, inside a transaction; None where there is none."""
    return connection.execute(_LEARNER, {"hash": hashed(token)}).scalar()


def ensure_learner(connection: Connection, token: str) -> int:
    """`learner_id`, made where there is none: the first thing kept makes the learner. For write transactions.

    Raises ValueError for what cannot be a token, DeadToken for one that was deleted.
    """
    if not well_formed(token):
        raise ValueError("learner: is no token")
    found = learner_id(connection, token)
    if found is None:
        if _is_dead(connection, token):
            raise DeadToken
        insert_once(connection, learners, {"token_hash": hashed(token), "created_s": time.time()})
        found = learner_id(connection, token)
        assert found is not None
    return found


def insert_once(connection: Connection, table: Table, values: dict[str, Any]) -> bool:
    """Insert, unless a unique column already holds the value, whoever wrote it. True where a row was made."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    done = connection.execute(
        dialect.insert(table).values(**values).on_conflict_do_nothing(), execution_options={"preserve_rowcount": True}
    )
    return done.rowcount == 1


def _is_dead(connection: Connection, token: str) -> bool:
    return connection.execute(select(dead_tokens.c.token_hash).where(dead_tokens.c.token_hash == hashed(token))).first() is not None


def _rows(connection: Connection, table: Table, found: int) -> list[dict[str, Any]]:
    rows = connection.execute(select(table).where(table.c.learner_id == found)).mappings()
    return [{name: value for name, value in row.items() if name not in ("learner_id", "id")} for row in rows]
