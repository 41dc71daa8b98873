"""Runs with a launcher of their own, and waiting for what they come to."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from scenarios.config import RunConfig
from scenarios.runs import Run, Runs
from scenarios.settings import Settings

PACED = (sys.executable, str(Path(__file__).with_name("paced_launcher.py")))

MakeRuns = Callable[..., Runs]


def wait_until(true: Callable[[], Any], limit_s: float = 10.0, what: str = "") -> Any:
    """The first true value of `true()`."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        value = true()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"not within {limit_s} s: {what}")


def ended(runs: Runs, run: Run, limit_s: float = 20.0) -> Run:
    """The run once it is over."""

    def over() -> Run | None:
        now = runs.get(run.run_id)
        return now if now is not None and now.over else None

    return wait_until(over, limit_s, f"{run.run_id} over")


def paced(ticks: int, seed: int = 0, **knobs: Any) -> RunConfig:
    """A run of the paced launcher that takes `ticks` x 20 ms."""
    return RunConfig.parse({"scenario": "sharded", "gpus": 2, "steps": ticks, "seed": seed, **knobs})


def processes_below(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run; a zombie whose parent has not looked yet does not."""
    return [process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def make_runs(tmp_path: Path) -> Iterator[MakeRuns]:
    """`make_runs(command=..., **settings)`: Runs on one data folder per test, closed afterwards."""
    made: list[Runs] = []

    def make(command: tuple[str, ...] = PACED, **settings: Any) -> Runs:
        runs = Runs(Settings(**{"data_dir": tmp_path / "data", "live_runs": 1, **settings}), launcher_command=command)
        made.append(runs)
        return runs

    yield make
    for runs in made:
        runs.close()
