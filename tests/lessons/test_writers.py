"""Writers of one process: they share a commit, one that fails takes nobody along, and nobody is told of success before the disk has it."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import event, insert, select

from lessons.store import STORE_FILE, Store, StoreError, open_store
from lessons.store.tables import learners


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path, busy_limit_s=5)
    yield opened
    opened.close()


@pytest.fixture
def commits(store: Store) -> list[int]:
    """One entry for every commit."""
    found: list[int] = []
    event.listen(store._engine, "commit", lambda connection: found.append(1))
    return found


def add(store: Store, name: str, then: Callable[[], object] = list) -> None:
    with store.write() as connection:
        connection.execute(insert(learners).values(token_hash=name, created_s=0.0))
        then()


def kept(folder: Path) -> set[str]:
    """What another process sees."""
    with sqlite3.connect(folder / STORE_FILE) as other:
        return {row[0] for row in other.execute("SELECT token_hash FROM learners")}


def together(store: Store, parts: dict[str, Callable[[], object]]) -> dict[str, object]:
    """All of `parts` in threads, in order: each is waiting for its turn before the first one leaves its own."""
    results: dict[str, object] = {}
    first_is_in, go_on = threading.Event(), threading.Event()
    names = list(parts)

    def hold() -> None:
        first_is_in.set()
        assert go_on.wait(5)
        parts[names[0]]()

    def run(name: str) -> None:
        try:
            add(store, name, hold if name == names[0] else parts[name])
            results[name] = "saved"
        except Exception as error:
            results[name] = error

    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    threads[0].start()
    assert first_is_in.wait(5)
    for number, thread in enumerate(threads[1:], start=1):
        thread.start()
        while store._writers is not None and store._writers._waiting < number:
            time.sleep(0.001)
    go_on.set()
    for thread in threads:
        thread.join()
    return results


def test_those_who_wait_share_one_commit(store: Store, commits: list[int], tmp_path: Path) -> None:
    names = [f"learner {number}" for number in range(6)]
    assert together(store, dict.fromkeys(names, list)) == dict.fromkeys(names, "saved")
    assert len(commits) == 1
    assert kept(tmp_path) == set(names)
    add(store, "one more")
    assert len(commits) == 2


def test_one_that_fails_takes_nobody_along(store: Store, tmp_path: Path) -> None:
    def fail() -> None:
        raise KeyError("its own affair")

    results = together(store, {"a": list, "b": fail, "c": refuse, "d": list})
    assert (results["a"], results["d"]) == ("saved", "saved")
    assert isinstance(results["b"], KeyError)
    assert isinstance(results["c"], StoreError)
    assert kept(tmp_path) == {"a", "d"}


def refuse() -> None:
    raise StoreError("nothing was saved")


def test_nobody_is_told_of_success_where_the_whole_transaction_was_lost(store: Store, tmp_path: Path) -> None:
    with store.read() as connection:  # the pool gives the same connection to the next one
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 1}")

    results = together(store, {"a": list, "x" * 50_000: list, "c": list})
    said = [str(result) for result in results.values()]
    assert any("disk of the server is full" in text for text in said)
    told = {name for name, result in results.items() if result == "saved"}
    assert kept(tmp_path) == told
    assert "a" not in told, "it was in the transaction that was given up"


def test_a_batch_that_the_next_one_gave_up_waiting_for_is_committed_all_the_same(store: Store, tmp_path: Path) -> None:
    assert store._writers is not None
    store._writers._waiting += 1  # somebody who will never come
    add(store, "a")
    assert kept(tmp_path) == {"a"}
    store._writers._waiting -= 1


def test_success_is_told_after_the_commit(store: Store, tmp_path: Path) -> None:
    def not_yet() -> None:
        assert kept(tmp_path) == set()

    add(store, "a", not_yet)
    assert kept(tmp_path) == {"a"}


def test_threads_take_turns_as_usual_afterwards(store: Store) -> None:
    usual_s = sys.getswitchinterval()
    add(store, "a", lambda: pytest.approx(sys.getswitchinterval()) == 0.0001 or pytest.fail("not within the turn"))
    assert sys.getswitchinterval() == usual_s


def test_hundreds_of_writers_are_all_kept(store: Store, commits: list[int]) -> None:
    threads = [threading.Thread(target=add, args=(store, f"learner {number}")) for number in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with store.read() as connection:
        assert len(connection.execute(select(learners.c.id)).all()) == 200
    assert len(commits) < 200 + 1
