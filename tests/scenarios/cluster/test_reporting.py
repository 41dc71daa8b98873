"""The parent of a rank: however the rank ends, its end is on record, with its last words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from scenarios.cluster.parts import PartReader, part_path
from scenarios.cluster.reporting import Destination
from tests.scenarios.cluster.collecting import TOKEN, collecting_app, free_port
from tests.scenarios.lifecycle.conftest import alive, wait_until

RANK = [sys.executable, "-m", "tests.scenarios.cluster.reporting_rank"]


def start(how: str, *options: str, **environ: str) -> subprocess.Popen[str]:
    env = {name: text for name, text in os.environ.items() if not name.startswith(("SHARDLAB_", "TORCHELASTIC"))} | environ
    return subprocess.Popen([*RANK, how, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def last_message(folder: Path) -> dict[str, Any]:
    messages = [message for _, message in PartReader(part_path(folder, 0)).messages()]
    assert [message["kind"] for message in messages[:2]] == ["hello", "step"]
    return dict(messages[-1])


@pytest.mark.parametrize(
    ("how", "status", "kind", "text"),
    [
        ("done", 0, "done", None),
        ("error", 1, "ValueError", "ValueError: wrong"),
        ("exit", 7, "exit", "rank 0 exited with status 7 before it had finished"),
        ("kill", 137, "signal", "rank 0 was killed by signal 9 (SIGKILL)"),
        ("abort", 134, "signal", "rank 0 was killed by signal 6 (SIGABRT)\nterminate called\n  what(): Is there a distributed"),
    ],
)
def test_every_end_is_recorded(tmp_path: Path, how: str, status: int, kind: str, text: str | None) -> None:
    rank = start(how, "record", str(tmp_path / "record"))
    _, err = rank.communicate(timeout=30)
    assert rank.returncode == status, err
    last = last_message(tmp_path / "record")
    assert last.get("type", last["kind"]) == kind
    if text is not None:
        assert last["message"].startswith(text)
    if how == "error":
        assert last["traceback"] == "File train.py\nValueError: wrong", "nothing of the node, nor the experiment's name"
    assert ("what(): Is there" in err) == (how == "abort"), "what the rank says is still to be seen"


def test_a_rank_that_is_told_to_end_says_so(tmp_path: Path) -> None:
    rank = start("wait", "record", str(tmp_path / "record"))
    assert rank.stdout is not None
    child = psutil.Process(int(rank.stdout.readline()))
    rank.terminate()
    rank.communicate(timeout=20)
    assert last_message(tmp_path / "record")["type"] == "ended"
    assert alive([child]) == []


def test_a_killed_agent_leaves_nobody_and_is_reported(tmp_path: Path) -> None:
    """A shell in torchrun's place is killed: the rank goes with it, and its reporter says why."""
    command = " ".join([*RANK, "wait", "record", str(tmp_path / "record")])
    agent = subprocess.Popen(["bash", "-c", f"{command} & wait"], stdout=subprocess.PIPE, text=True)
    assert agent.stdout is not None
    child = psutil.Process(int(agent.stdout.readline()))
    reporter = child.parent()
    assert reporter is not None
    agent.kill()
    agent.wait(10)
    wait_until(lambda: alive([child, reporter]) == [], 10, "nobody left")
    last = last_message(tmp_path / "record")
    assert (last["type"], last["message"]) == ("agent", "rank 0 ended with its torchrun, which was killed")


def test_training_never_waits_for_an_app_that_is_away(tmp_path: Path) -> None:
    """3,000 steps are said while nobody answers; afterwards all of them lie on disk."""
    port = free_port()
    rank = start(
        "flood", "collect", f"http://127.0.0.1:{port}", "run_id", "job-4321", SHARDLAB_COLLECT_TOKEN=TOKEN, TMPDIR=str(tmp_path)
    )
    assert rank.stdout is not None
    rank.stdout.readline()
    assert rank.stdout.readline(), "it has said all before there is an app"
    with collecting_app(tmp_path / "data", port=port) as app:
        _, err = rank.communicate(timeout=60)
        assert rank.returncode == 0, err
        wait_until(lambda: app.runs.get("job-4321"), 5)
        log = (app.runs.folder.path("job-4321") / "accepted.jsonl").read_bytes()
    assert log.count(b"\n") == 3003
    assert list(tmp_path.glob("shardlab-*")) == [], "all was sent: the waiting room is gone"


def test_what_a_rank_cannot_send_it_keeps_and_says_where(tmp_path: Path) -> None:
    port = free_port()
    rank = start("wait", "collect", f"http://127.0.0.1:{port}", "run_id", "job-4321", SHARDLAB_COLLECT_TOKEN=TOKEN, TMPDIR=str(tmp_path))
    assert rank.stdout is not None
    rank.stdout.readline()
    with collecting_app(tmp_path / "data", port=port, token="another-token-of-the-app"):
        time.sleep(1.5)
        rank.send_signal(signal.SIGTERM)
        _, err = rank.communicate(timeout=40)
    (room,) = tmp_path.glob("shardlab-*")
    assert last_message(room)["type"] == "ended"
    assert "3 messages were not taken by" in err
    assert f"send them with: python -m scenarios resend {room}" in err
    assert (room.stat().st_mode & 0o777, part_path(room, 0).stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize(
    ("options", "environ", "said"),
    [
        ({"collect": "ftp://x"}, {}, "collect='ftp://x': must be the address"),
        ({"collect": "http://app"}, {}, "SHARDLAB_COLLECT_TOKEN='': must be"),
        ({"collect": "http://app"}, {"SHARDLAB_COLLECT_TOKEN": TOKEN, "TORCHELASTIC_RUN_ID": "none"}, "run_id='none': must be 8 to 40"),
        ({"collect": "http://app", "run_id": "a/b/c/d/e"}, {"SHARDLAB_COLLECT_TOKEN": TOKEN}, "run_id='a/b/c/d/e': must be"),
    ],
)
def test_a_destination_that_cannot_be_costs_one_line(options: dict[str, str], environ: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match="must be") as refused:
        Destination.of(options, environ)
    assert str(refused.value).startswith(said)


def test_a_restarted_job_is_a_run_of_its_own(tmp_path: Path) -> None:
    environ = {"TORCHELASTIC_RESTART_COUNT": "2", "TORCHELASTIC_RUN_ID": "job-1234", "SHARDLAB_COLLECT_TOKEN": TOKEN}
    options = {"batch": "64", "record": str(tmp_path), "collect": "http://app:8501/"}
    found = Destination.of(options, environ)
    assert found == Destination(record=tmp_path / "restart-2", collect="http://app:8501", run="job-1234-r2", token=TOKEN)
    assert options == {"batch": "64"}, "the rest is the run's"
    assert Destination.of({}, {"SHARDLAB_RECORD_DIR": "/x"}) == Destination(record=Path("/x"))
    assert Destination.of({"batch": "64"}, {}) is None


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    destination = Destination(record=tmp_path)
    destination.open_part(3).close()
    with pytest.raises(ValueError, match=r"must be a folder without rank-3\.jsonl"):
        destination.open_part(3)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="must be a folder, not a file"):
        Destination(record=tmp_path / "file").open_part(0)
