"""The database goes away for ten seconds in the middle of a vote: on a real server, with real databases, by way of HTTP.

Every vote that was acknowledged is in the store once, whatever was not is sent again and counted once; meanwhile everybody sees where the
class stands and the console says what happens; afterwards nobody has to start anything anew.
"""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from lessons.learners import hashed
from lessons.store import STORE_FILE, open_store
from lessons.store.tables import participants, votes
from pages.classroom.balloting import FLOWING, STUCK
from tests.browser.server import AppServer
from tests.pages.classroom.conftest import KEY
from tests.pages.classroom.streams import Follower
from tests.pages.classroom.test_faults import Phone, a_class
from tests.postgres import Cluster

PHONES = 16
LATE = 24
"""More than the server has threads for what may have to wait."""
AWAY_S = 10.0
HOLD = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
input()
"""


@dataclass(frozen=True)
class Way:
    """How a database goes away."""

    away: Callable[[], AbstractContextManager[None]]
    silent: bool = False
    """Who asks it is not refused but waits."""


class Voter(threading.Thread):
    """Somebody who cannot decide: votes, waits for the acknowledgement, votes anew."""

    def __init__(self, phone: Phone, options: list[str], over: threading.Event, number: int) -> None:
        super().__init__(daemon=True)
        self.phone, self._options, self._over, self._luck = phone, options, over, random.Random(number)
        self.acknowledged: list[str] = []
        self.sent_again = 0
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            for choice in itertools.cycle(self._options):
                self.sent_again += self.phone.vote(choice) - 1
                self.acknowledged.append(choice)
                if self._over.is_set():
                    return
                time.sleep(self._luck.uniform(0.05, 0.4))
        except BaseException as fault:
            self.fault = fault


@contextmanager
def crashed(cluster: Cluster) -> Iterator[None]:
    cluster.stop(signal.SIGQUIT)
    yield
    cluster.start()


@contextmanager
def locked(store: Path) -> Iterator[None]:
    """Another process has the one lock of SQLite."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    yield
    holder.communicate("\n", timeout=20)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_postgresql_crashes_in_a_vote_and_later_hangs(tmp_path: Path) -> None:
    with Cluster() as cluster:
        play(tmp_path / "data", cluster.url(), (Way(lambda: crashed(cluster)), Way(cluster.hanging, silent=True)))


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_sqlite_is_locked_in_a_vote(tmp_path: Path) -> None:
    play(tmp_path / "data", "", (Way(lambda: locked(tmp_path / "data" / STORE_FILE), silent=True),))


def play(data_dir: Path, database_url: str, ways: tuple[Way, ...]) -> None:
    """A vote during which the database goes away in each of these ways."""
    env = {"SHARDLAB_INSTRUCTOR_KEY": KEY, "SHARDLAB_PREVIEW": "1", "SHARDLAB_LESSONS_DIR": "", "SHARDLAB_DATABASE_URL": database_url}
    with AppServer(data_dir, env=env) as server, httpx.Client(base_url=server.url, timeout=30) as driver:
        code = a_class(data_dir, database_url)
        assert server.process is not None
        process = server.process.pid
        assert driver.post("/instructor/sign-in", data={"key": KEY}).status_code == 303
        phones = [Phone(server.url, code, pause_s=0.5, limit_s=8.0) for _ in range(PHONES)]
        options = [option["id"] for option in driver.post(f"/class/{code}/do", json={"action": "next"}).json()["item"]["options"]]
        over = threading.Event()
        voters = [Voter(phone, options, over, number) for number, phone in enumerate(phones)]
        for voter in voters:
            voter.start()
        for times, way in enumerate(ways, 1):
            go_away(server.url, driver, code, voters, way, times)
        over.set()
        for voter in voters:
            voter.join(60)
            assert voter.fault is None, voter.fault
            assert voter.sent_again, "it did not notice"
        assert kept(data_dir, database_url, code) == {
            hashed(voter.phone.token): [(voter.acknowledged[-1], len(voter.acknowledged))] for voter in voters
        }
        view = driver.post(f"/class/{code}/do", json={"action": "next"}).json()
        assert (view["state"], view["votes"]["first"]["total"]) == ("votes", PHONES)
        assert server.process.pid == process
        assert server.process.poll() is None
        assert "Traceback" not in server.log_text().partition("Instructors sign in")[2]


def go_away(url: str, driver: httpx.Client, code: str, voters: list[Voter], way: Way, times: int) -> None:
    """For the `times`-th time."""
    wait_for_more(voters)
    phones = [voter.phone for voter in voters]
    desk = Follower(driver, code, "console")
    desk.until("class")
    with way.away():
        back_s = time.monotonic() + AWAY_S
        answered: list[int] = []
        late = [threading.Thread(target=knock, args=(url, code, answered), daemon=True) for _ in range(LATE)]
        for each in late:
            each.start()
        until_said(desk, STUCK, times)
        for phone in phones[:3]:
            assert phone.view()["state"] == "vote", "where the class stands is known without the database"
        hand, wall = phones[0].follow(), Follower(driver, code, "projector")
        assert hand.until("class")["me"]["votes"]["first"]
        assert wall.until("class")["answered"] == PHONES
        for page in (f"/c/{code}", f"/class/{code}/projector", f"/class/{code}/console"):
            assert driver.get(page).status_code == 200
        assert not (way.silent and answered), "they were shown only after those who wait for the database"
        time.sleep(max(0.0, back_s - time.monotonic()))
    until_said(desk, FLOWING, times)
    wait_for_more(voters)
    for each in late:
        each.join(30)
    for follower in (desk, hand, wall):
        follower.close()


def until_said(desk: Follower, words: str, times: int) -> None:
    """Until the console's log holds these words so often."""
    while [line["words"] for line in desk.until("class", 60)["log"]].count(words) < times:
        pass


def knock(url: str, code: str, answered: list[int]) -> None:
    """Somebody comes late, and waits for an answer."""
    with httpx.Client(base_url=url, timeout=60) as client:
        answered.append(client.post(f"/c/{code}/join", json={}).status_code)


def wait_for_more(voters: list[Voter]) -> None:
    """Until everybody has had two more votes acknowledged: one of them was sent after this began."""
    before = [len(voter.acknowledged) for voter in voters]
    deadline = time.monotonic() + 60
    while any(len(voter.acknowledged) < count + 2 for voter, count in zip(voters, before, strict=True)):
        assert time.monotonic() < deadline, [voter.fault for voter in voters]
        time.sleep(0.05)


def kept(data_dir: Path, database_url: str, code: str) -> dict[str, list[tuple[str, int]]]:
    """Hash of a token -> choice and number of changes of each vote that the store has of it."""
    store = open_store(data_dir, database_url)
    found: dict[str, list[tuple[str, int]]] = {}
    with store.read() as connection:
        query = select(participants.c.token_hash, votes.c.choice, votes.c.changes).join(votes).where(votes.c.code == code)
        for row in connection.execute(query):
            found.setdefault(row.token_hash, []).append((row.choice, row.changes))
    store.close()
    return found
