"""The store on both databases: migrations and adoption, two servers at once, newer, damaged and unreachable databases, what is said."""

from __future__ import annotations

import logging
import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import insert, select, text
from sqlalchemy.exc import OperationalError

from lessons.attempts import AttemptStore
from lessons.store import STORE_FILE, Store, StoreError, open_store
from lessons.store.faults import store_error
from lessons.store.migrate import HEAD, MIGRATIONS
from lessons.store.tables import attempts, learners, metadata
from scenarios.settings import load_settings
from tests.postgres import Cluster

BEFORE_MIGRATIONS = """
CREATE TABLE attempts (
    token VARCHAR NOT NULL, lesson_id VARCHAR NOT NULL, stage VARCHAR NOT NULL, version INTEGER NOT NULL, answers JSON NOT NULL,
    certainties JSON NOT NULL, predictions JSON NOT NULL, runs JSON NOT NULL, shown BOOLEAN NOT NULL, created_s FLOAT NOT NULL,
    changed_s FLOAT NOT NULL, PRIMARY KEY (token)
);
INSERT INTO attempts VALUES ('old-token', 'one-busy-gpu', 'run', 3, '["t2"]', '["fairly"]', '["only0"]', '{"k2": "run-1"}', 0, 1.0, 2.0);
"""


def test_the_tables_are_those_that_the_code_describes(database: Store) -> None:
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        differences = compare_metadata(context, metadata)
        if database.dialect == "sqlite":
            # SQLAlchemy does not read the deletion rule of a reference that stands beside its column, as SQLite adds it.
            differences = [difference for difference in differences if not str(difference[0]).endswith("_fk")]
            references = connection.execute(text("PRAGMA foreign_key_list(attempts)")).all()
            assert [(row.table, row.on_delete) for row in references] == [("learners", "CASCADE")]
        assert differences == []


def test_the_head_is_the_newest_migration() -> None:
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == HEAD


def test_a_database_from_before_migrations_is_adopted_with_its_rows(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / STORE_FILE)
    old.executescript(BEFORE_MIGRATIONS)
    old.close()
    store = AttemptStore(tmp_path)
    attempt = store.get("old-token")
    assert attempt is not None
    assert (attempt.answers, attempt.stage, attempt.runs, attempt.learner_id) == (("t2",), "run", {"k2": "run-1"}, None)
    assert store.see_verdict(attempt).stage == "verdict"
    store.close()
    with sqlite3.connect(tmp_path / STORE_FILE) as again:
        assert again.execute("SELECT version_num FROM alembic_version").fetchall() == [(HEAD,)]


def in_threads(count: int, do: Callable[[], object]) -> list[object]:
    """What each of `count` threads that begin together returned, or the exception."""
    results: list[object] = []
    barrier = threading.Barrier(count)

    def run() -> None:
        barrier.wait()
        try:
            results.append(do())
        except Exception as error:
            results.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_servers_that_start_at_once_make_the_tables_once(
    kind: str, tmp_path: Path, cluster: Cluster, request: pytest.FixtureRequest
) -> None:
    url = ""
    if kind == "postgresql":
        url = new_database(request.getfixturevalue("postgresql_url"), cluster, "together")
    stores = in_threads(3, lambda: open_store(tmp_path, url))
    assert [store for store in stores if not isinstance(store, Store)] == []
    for store in stores:
        assert isinstance(store, Store)
        with store.read() as connection:
            assert connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all() == [HEAD]
        store.close()


def new_database(url: str, cluster: Cluster, name: str) -> str:
    store = open_store(Path(), url)
    with store._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    store.close()
    return cluster.url(name)


def test_a_database_of_a_newer_version_is_left_alone(opened: Callable[..., Store]) -> None:
    store = opened()
    with store.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    try:
        with pytest.raises(StoreError, match=r"newer version.*'9999'.*Update Shardlab"):
            opened()
        with store.read() as connection:
            assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "9999"
    finally:
        with store.write() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = :head"), {"head": HEAD})


def test_what_fails_within_a_block_leaves_nothing(database: Store) -> None:
    def write(*, times: int, then: Callable[[], object]) -> None:
        with database.write() as connection:
            for _ in range(times):
                connection.execute(insert(learners).values(token_hash="a" * 64, created_s=1.0))
            then()

    with pytest.raises(StoreError, match="failed"):
        write(times=2, then=list)
    with pytest.raises(KeyError):
        write(times=1, then=lambda: {}["nothing"])
    with database.read() as connection:
        assert connection.execute(select(learners)).all() == []


def test_many_writers_all_get_their_turn(opened: Callable[..., Store]) -> None:
    store, other = opened(busy_limit_s=10), opened(busy_limit_s=10)

    def write(into: Store = store) -> None:
        with into.write() as connection:
            count = connection.execute(select(learners.c.id).with_for_update()).all()
            connection.execute(insert(learners).values(token_hash=f"{threading.get_ident()} {len(count)}", created_s=0.0))

    results = in_threads(20, write) + in_threads(20, lambda: write(other))
    assert results == [None] * 40
    with store.read() as connection:
        assert len(connection.execute(select(learners.c.id)).all()) == 40


def test_a_database_that_is_held_by_another_is_said_to_be_busy(opened: Callable[..., Store]) -> None:
    store, other = opened(busy_limit_s=0.2), opened()
    with other.write() as holding:
        if other.dialect == "postgresql":
            holding.execute(text("LOCK TABLE attempts IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(StoreError, match="busy; nothing was saved"):
            AttemptStore(store).start("one-busy-gpu")
    assert AttemptStore(store).start("one-busy-gpu").stage == "question"


def test_a_lost_table_is_said(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with store.write() as connection:
        connection.execute(text("DROP TABLE attempts"))
    with pytest.raises(StoreError, match="lost a table"), store.read() as connection:
        connection.execute(select(attempts))
    store.close()


def test_a_backup_that_is_put_in_place_is_gone_on_with(tmp_path: Path) -> None:
    """Connections would stay at the file that is gone: what was acknowledged afterwards would be lost with it."""
    store, lesson_id = open_store(tmp_path), "one-busy-gpu"
    kept = AttemptStore(store).start(lesson_id)
    with sqlite3.connect(tmp_path / STORE_FILE) as source, sqlite3.connect(tmp_path / "backup") as backup:
        source.backup(backup)
    source.close()
    backup.close()
    for part in ("", "-wal", "-shm"):
        (tmp_path / f"{STORE_FILE}{part}").unlink()
    with pytest.raises(StoreError, match="nothing was saved"):
        AttemptStore(store).start(lesson_id)
    (tmp_path / "backup").rename(tmp_path / STORE_FILE)
    acknowledged = AttemptStore(store).start(lesson_id)
    store.close()
    again = open_store(tmp_path)
    assert AttemptStore(again).get(kept.token) == kept
    assert AttemptStore(again).get(acknowledged.token) == acknowledged
    again.close()


def test_a_database_that_goes_away_comes_back(cluster: Cluster, postgresql_url: str, tmp_path: Path) -> None:
    store = open_store(tmp_path, postgresql_url)
    cluster.stop(signal.SIGQUIT)
    try:
        with pytest.raises(StoreError, match="cannot be reached") as away:
            AttemptStore(store).start("one-busy-gpu")
        assert postgresql_url.partition("host=")[2] not in str(away.value)
        with pytest.raises(StoreError, match="cannot be reached"):
            open_store(tmp_path, postgresql_url)
    finally:
        cluster.start()
    assert AttemptStore(store).start("one-busy-gpu").stage == "question"
    store.close()


def test_a_database_that_does_not_exist_is_said(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        open_store(tmp_path, cluster.url("nothing"))


def test_the_password_is_never_printed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    url = "postgresql://learner:swordfish@127.0.0.1:1/shardlab"
    settings = load_settings({"SHARDLAB_DATABASE_URL": url})
    assert settings.database_url == url
    with pytest.raises(StoreError, match="cannot be reached") as away:
        open_store(tmp_path, url)
    with pytest.raises(ValueError, match=r"SHARDLAB_DATABASE_URL=.not shown.: must begin with postgresql://") as refused:
        load_settings({"SHARDLAB_DATABASE_URL": url.replace("postgresql", "mysql")})
    assert "swordfish" not in f"{settings!r} {settings} {away.value} {refused.value} {caplog.text}"
    assert "learner" not in str(away.value)


class FromPostgreSQL(Exception):
    """As psycopg raises them: with a code, and a text that names tables and users."""

    def __init__(self, sqlstate: str) -> None:
        self.sqlstate = sqlstate
        super().__init__('permission denied for user "secret"')


@pytest.mark.parametrize(
    ("sqlstate", "said"),
    [
        ("53100", "disk of the server is full"), ("25006", "cannot be written"), ("42P01", "lost a table"), ("40P01", "busy"),
        ("55P03", "busy"), ("57P01", "cannot be reached"), ("08006", "cannot be reached"), ("28P01", "refuses"), ("42501", "rights"),
        ("XX001", "damaged"), ("22P02", "finds the reason in its log"),
    ],
)
def test_the_errors_of_postgresql_are_said_in_words(sqlstate: str, said: str) -> None:
    message = str(store_error(OperationalError("SELECT", {}, FromPostgreSQL(sqlstate))))
    assert said in message
    assert "secret" not in message
