"""`python -m scenarios diagnose`: the record is named by folder or id, people get a table, programs one object."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scenarios.cli import main
from scenarios.cli_diagnose import _names
from scenarios.record import summary_of
from tests.scenarios.conftest import RunFresh


@pytest.fixture(scope="module")
def fed(run_fresh: RunFresh) -> Path:
    return run_fresh(scenario="rank0_loading", steps=8)


def test_json_names_the_cause_and_where_the_time_went(fed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(fed), "--json"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 1
    found = json.loads(out)
    assert (found["run"], found["source"], found["enough"]) == (fed.name, "virtual", True)
    first = found["findings"][0]
    assert (first["cause"], first["rank"], first["likelihood"]) == ("rank0_feeds", 0, "very likely")
    assert [rank["rank"] for rank in found["breakdown"]] == list(range(8))
    for rank in found["breakdown"]:
        assert sum(rank["parts"].values()) == pytest.approx(rank["step_seconds"])


def test_people_read_it_in_80_columns(
    fed: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("SHARDLAB_DATA_DIR", str(fed.parent.parent))
    assert main(["diagnose", fed.name]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Very likely: all data goes through GPU 0.")
    assert "Idle: another rank is late" in out
    assert "GPU 0" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("name", ["nope", "no such run", "../../etc", "aaaaaaaaaaaaaaaa"])
def test_a_record_that_is_not_there_costs_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDLAB_DATA_DIR", str(tmp_path))
    assert main(["diagnose", name]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert name in err
    assert str(tmp_path / "runs") in err


def test_too_little_is_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "events.jsonl").write_text('{"id":1,"event":"head","data":{"gpus":8,"source":"virtual"}}\n')
    assert main(["diagnose", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("Not enough evidence: ")


def test_what_viewers_receive_says_no_cause(fed: Path) -> None:
    assert "diagnosis" not in (summary_of(fed) or {"diagnosis": 0})


def test_neighbours_are_named_as_a_range() -> None:
    assert _names([0, 1, 2, 4, 6, 7]) == "0-2, 4, 6-7"
