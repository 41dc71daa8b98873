"""One class on two servers that share a PostgreSQL and a data folder: phones and console on either, a live run on both, one of them dies.

Real servers as processes of their own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from lessons.classroom import Classroom
from lessons.store import Store, open_store
from scenarios.record import end_of, is_over
from tests.browser.server import ROOT, AppServer
from tests.pages.classroom.conftest import LESSON
from tests.pages.classroom.streams import Follower
from tests.postgres import Cluster

SCRIPT = ROOT / "tests/browser/class_app.py"
"""It waits for a live run as long as a machine full of other tests needs."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@dataclass(frozen=True, kw_only=True)
class Replicas:
    """`one` and `other`, and their store."""

    one: AppServer
    other: AppServer
    store: Store
    data_dir: Path

    def a_class(self) -> tuple[str, httpx.Client, httpx.Client]:
        """Its code, and one instructor's two browsers, one at each server, who signed in at `one`."""
        code = Classroom(self.store).create([LESSON]).code
        here = httpx.Client(base_url=self.one.url, timeout=120)
        key = (self.data_dir / "instructor.key").read_text().strip()
        assert here.post("/instructor/sign-in", data={"key": key}).status_code == 303
        return code, here, httpx.Client(base_url=self.other.url, timeout=120, cookies=here.cookies)


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    folder = tmp_path_factory.mktemp("replicas")
    data_dir = folder / "data"
    data_dir.mkdir()
    with Cluster() as cluster:
        env = {
            "PYTHONPATH": str(ROOT), "SHARDLAB_MEASURE_AT_START": "false", "SHARDLAB_LIVE_RUNS": "1",
            "SHARDLAB_DATABASE_URL": cluster.url(),
        }  # fmt: skip
        servers = [AppServer(data_dir, script=SCRIPT, cwd=ROOT, env=env) for _ in range(2)]
        for number, server in enumerate(servers):
            server.log = folder / f"{number}.log"
            server.spawn()  # both at once on a fresh folder and an empty database
        try:
            for server in servers:
                wait_for(server.answers, 120)
            store = open_store(data_dir, cluster.url())
            yield Replicas(one=servers[0], other=servers[1], store=store, data_dir=data_dir)
            store.close()
        finally:
            for server in servers:
                server.stop()


def wait_for(true: Any, limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def phone(server: AppServer, code: str) -> httpx.Client:
    made = httpx.Client(base_url=server.url, timeout=30)
    assert made.post(f"/c/{code}/join", json={}).status_code == 200
    return made


def vote(client: httpx.Client, code: str, choice: str) -> int:
    return client.post(f"/c/{code}/vote", json={"round": "first", "item_no": 1, "choice": choice}).status_code


def act(driver: httpx.Client, code: str, action: str, **fields: Any) -> dict[str, Any]:
    answer = driver.post(f"/class/{code}/do", json={"action": action, **fields})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def at_experiments(driver: httpx.Client, code: str) -> dict[str, Any]:
    for state in ("vote", "votes", "discuss", "revote", "predict", "experiments"):
        view = act(driver, code, "next")
        assert view["state"] == state
    return view


def show(driver: httpx.Client, code: str, cause_id: str, mode: str = "live") -> dict[str, Any]:
    while driver.get("/healthz").json()["launcher"] != "ready":
        time.sleep(0.1)
    answer = driver.post(f"/class/{code}/experiment", json={"cause_id": cause_id, "mode": mode})
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["run"])


def logged(driver: httpx.Client, code: str) -> list[str]:
    return [line["words"] for line in act(driver, code, "blank", on=False)["log"]]


def test_states_and_votes_are_the_same_on_both(replicas: Replicas) -> None:
    code, here, there = replicas.a_class()
    assert there.get(f"/class/{code}/console").status_code == 200, "one key, whichever server made it: its cookies are good at both"
    ann, bob, eve = phone(replicas.one, code), phone(replicas.other, code), phone(replicas.one, code)
    eve_there = httpx.Client(base_url=replicas.other.url, timeout=30, cookies=eve.cookies)
    at_one, at_other = Follower(ann, code), Follower(bob, code)
    view = act(here, code, "next")
    options = [option["id"] for option in view["item"]["options"]]
    assert at_other.until("class", state="vote")["item"]["options"]
    assert [vote(ann, code, options[0]), vote(bob, code, options[1])] == [200, 200]
    # One participant at both: the last vote counts, once.
    assert [vote(eve_there, code, options[1]), vote(eve, code, options[2]), vote(eve_there, code, options[2])] == [200, 200, 200]
    for driver in (here, there):
        desk = Follower(driver, code, "console")
        seen = desk.until("class", answered=3)
        assert [option["n"] for option in seen["shares"]["options"]][:4] == [1, 1, 1, 0]
        desk.close()
    for _ in range(4):  # the next request of a phone may come to the other server at once
        late = phone(replicas.one, code)
        late_there = httpx.Client(base_url=replicas.other.url, timeout=30, cookies=late.cookies)
        assert vote(late_there, code, options[3]) == 200
    assert eve.get(f"/c/{code}/view").json()["me"]["votes"]["first"] == options[2]
    act(there, code, "next")
    assert at_one.until("class", state="votes")
    assert vote(bob, code, options[0]) == 409, "closed at the other server is closed here"
    at_one.close()
    at_other.close()


def test_a_live_run_is_on_the_phones_of_the_other_server_and_its_recording_can_be_played_there(replicas: Replicas) -> None:
    code, here, there = replicas.a_class()
    view = at_experiments(here, code)
    causes = {cause["title"]: cause["id"] for cause in view["causes"]}
    cause = causes["Batch too large"]
    hands = [Follower(phone(server, code), code) for server in (replicas.one, replicas.other)]
    run = show(here, code, cause)
    for hand in hands:
        hand.until("shown", 60, run_id=run["run_id"])
        assert hand.until("tick", 60)["util"]
        assert hand.until("end", 120)["outcome"] == "out_of_memory"
    ids = [[event.id for event in hand.seen if event.name == "tick"] for hand in hands]
    assert [each.rpartition(".")[2] for each in ids[0]] == [each.rpartition(".")[2] for each in ids[1]], "the same samples"

    # Its server records; the other one can play that within moments, and knows that it ended as it should.
    wait_for(lambda: there.post(f"/class/{code}/experiment", json={"cause_id": cause, "mode": "recorded"}).status_code == 200)
    for hand in hands:
        assert hand.until("shown", 60)["run_id"] == run["run_id"]
        assert hand.until("end", 60)["outcome"] == "out_of_memory"
    assert not any("broke off" in line for line in logged(here, code))

    # A live run at the other one, which the first one takes off the screens: it ends, nobody watches it.
    second = show(there, code, causes["Data not sharded"])
    hands[0].until("shown", 60, run_id=second["run_id"])
    hands[0].until("tick", 60)
    show(here, code, cause, "recorded")
    hands[1].until("shown", 60, run_id=run["run_id"])
    record = replicas.data_dir / "runs" / second["run_id"]
    wait_for(lambda: is_over(record))
    assert (end_of(record) or {})["outcome"] == "stopped"
    for hand in hands:
        hand.close()


def test_a_server_that_dies_with_its_run_is_told_by_the_other_and_begins_anew_beside_it(replicas: Replicas) -> None:
    code, here, there = replicas.a_class()
    view = at_experiments(here, code)
    causes = {cause["title"]: cause["id"] for cause in view["causes"]}
    hand, desk = Follower(phone(replicas.one, code), code), Follower(here, code, "console")
    run = show(there, code, causes["Data not sharded"])
    hand.until("shown", 60, run_id=run["run_id"])
    hand.until("tick", 60)
    replicas.other.kill()
    end = hand.until("end", 60)
    assert end["outcome"] == "interrupted"
    assert end["sentence"].startswith("The server that computed it went away at ")
    wait_for(lambda: any("broke off: The server that computed it went away" in line for line in logged(here, code)))

    # The one that lives goes on, and the other one's start leaves its run alone.
    replicas.other.spawn()
    run = show(here, code, causes["Batch too large"])
    wait_for(replicas.other.answers, 120)
    far = Follower(phone(replicas.other, code), code)
    for follower in (hand, far):
        follower.until("shown", 60, run_id=run["run_id"])
        assert follower.until("end", 120)["outcome"] == "out_of_memory"
    assert sum("broke off" in line for line in logged(there, code)) == 1
    for follower in (hand, desk, far):
        follower.close()
