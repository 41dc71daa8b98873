"""Fresh runs of the real thing for the tests of this room: one launcher for all of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scenarios.config import RunConfig
from scenarios.record import end_of
from scenarios.runs import Runs
from scenarios.settings import load_settings

RunFresh = Callable[..., Path]


@pytest.fixture(scope="session")
def shared_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    data_dir = tmp_path_factory.mktemp("data")
    runs = Runs(load_settings({"SHARDLAB_DATA_DIR": str(data_dir), "SHARDLAB_LIVE_RUNS": "1"}))
    yield runs
    runs.close()


@pytest.fixture(scope="session")
def run_fresh(shared_runs: Runs) -> RunFresh:
    """`run_fresh(scenario=..., **knobs)` computes a run as fast as it can and returns its folder."""

    def run(**knobs: Any) -> Path:
        started = shared_runs.start(RunConfig.parse(knobs), viewer="test", pace="fast")
        deadline = time.monotonic() + 100
        while end_of(started.run_dir) is None:
            assert time.monotonic() < deadline, "the run did not end"
            time.sleep(0.05)
        return started.run_dir

    return run


@pytest.fixture(scope="session")
def default_run(run_fresh: RunFresh) -> Callable[[str], Path]:
    """The folder of one default run of each scenario, computed once."""
    known: dict[str, Path] = {}

    def run(scenario: str) -> Path:
        if scenario not in known:
            known[scenario] = run_fresh(scenario=scenario)
        return known[scenario]

    return run


@pytest.fixture(scope="session")
def default_summary(default_run: Callable[[str], Path]) -> Callable[[str], dict[str, Any]]:
    """The summary of that run."""

    def summary(scenario: str) -> dict[str, Any]:
        end = end_of(default_run(scenario))
        assert end is not None
        assert end["summary"] == json.loads(json.dumps(end["summary"]))
        return dict(end["summary"])

    return summary
