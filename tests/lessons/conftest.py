"""The first lesson, a writable copy of all of them, and both databases, for the tests of this room."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from lessons.loader import CONTENT, load_lessons
from lessons.model import Lesson
from lessons.store import Store, open_store
from lessons.store.tables import metadata
from tests.postgres import Cluster

TABLES = ", ".join(metadata.tables)


@pytest.fixture(scope="session")
def lesson() -> Lesson:
    found = load_lessons().get("one-busy-gpu")
    assert found is not None
    return found


@pytest.fixture
def content(tmp_path: Path) -> Path:
    """A course of one lesson that a test may break."""
    root = tmp_path / "content"
    shutil.copytree(CONTENT / "one-busy-gpu", root / "one-busy-gpu")
    shutil.copy(CONTENT / "glossary.yaml", root)
    return root


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A real PostgreSQL, one for the whole run."""
    with Cluster() as started:
        yield started


@pytest.fixture(scope="session")
def postgresql_url(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with all tables, shared: whoever uses it empties it first."""
    url = cluster.url()
    open_store(tmp_path_factory.mktemp("unused"), url).close()
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """`opened()` opens the test's database, `opened(busy_limit_s=...)` once more: the same tests on SQLite and on PostgreSQL."""
    url = "" if request.param == "sqlite" else request.getfixturevalue("postgresql_url")
    stores: list[Store] = []

    def open_one(*, busy_limit_s: float = 2.0) -> Store:
        stores.append(open_store(tmp_path, url, busy_limit_s=busy_limit_s))
        return stores[-1]

    if url:
        with open_one().write() as connection:
            connection.execute(text(f"TRUNCATE {TABLES}"))
    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def database(opened: Callable[..., Store]) -> Store:
    """An empty store, on SQLite and on PostgreSQL."""
    return opened()
