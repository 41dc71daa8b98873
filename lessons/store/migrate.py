"""Brings the tables of a database to what this version expects, at the start, by one process at a time.

The whole way is one transaction on both databases: a server that is killed in the middle leaves the old state. A database made before
there were migrations is adopted with its rows. Owns the version of the database; the steps are in `lessons/migrations/versions`.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, inspect, text

from lessons.store.faults import StoreError

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

HEAD = "0003"
"""The version that this code expects, so that a database which has it is opened without loading Alembic."""

MIGRATIONS = Path(__file__).resolve().parents[1] / "migrations"
LOCK = 0x5EA2D1AB
"""Names our advisory lock in a PostgreSQL database."""
LOCK_LIMIT_S = 60
"""How long a replica waits for another one to bring the tables up to date."""


def migrate(engine: Engine) -> None:
    """Bring the tables up to date, unless they are. Raises StoreError for a database of a newer version; SQLAlchemyError."""
    with engine.begin() as connection:
        if _version(connection) == HEAD:
            return
    with engine.execution_options(shardlab_begin="BEGIN IMMEDIATE").begin() as connection:
        _wait_for_others(connection)
        if _version(connection) != HEAD:
            _upgrade(connection)


def _wait_for_others(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        for limit in ("lock_timeout", "statement_timeout"):
            connection.execute(text(f"SET LOCAL {limit} = {LOCK_LIMIT_S * 1000}"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})


def _version(connection: Connection) -> str | None:
    """What the database says it is; None for an empty one and for one from before there were migrations."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _upgrade(connection: Connection) -> None:
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    script = ScriptDirectory.from_config(config)
    version = _version(connection)
    if version is not None and version not in _known(script):
        raise StoreError(
            f"The store was written by a newer version of Shardlab: its tables are at {version[:40]!r}, this version knows them up to "
            f"{HEAD!r}. Nothing was changed. Update Shardlab, or name another SHARDLAB_DATA_DIR or SHARDLAB_DATABASE_URL."
        )

    def steps(current: Any, _: object) -> Any:
        return script._upgrade_revs(HEAD, current)

    with EnvironmentContext(config, script, fn=steps) as context:
        context.configure(connection=connection)
        context.run_migrations()


def _known(script: ScriptDirectory) -> Collection[str]:
    return {step.revision for step in script.walk_revisions()}
