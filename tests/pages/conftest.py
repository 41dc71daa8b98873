"""The pages without a browser: Streamlit's AppTest through navigation.py, on runs that only pretend."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from lessons.attempts import AttemptStore
from lessons.learning import close_learning
from lessons.store import Store, StoreError
from lessons.store.faults import BUSY
from scenarios import runs as runs_module
from scenarios.config import RunConfig
from scenarios.record import append_event
from scenarios.runs import QueueFull, Run
from scenarios.settings import Settings
from scenarios.sweeps import get_sweeps

ROOT = Path(__file__).resolve().parents[2]


class PretendedRuns:
    """Stands where `Runs` would: remembers what was asked for, starts nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = Settings(data_dir=folder.parent)
        self.runs: dict[str, Run] = {}
        self.recorded: dict[str, Run] = {}
        self.measured: list[RunConfig] = []
        self.full = False
        self._numbers = itertools.count()

    def start(
        self, config: RunConfig, *, viewer: str, pace: str = "live", priority: str = "visitor", hidden: bool = False
    ) -> Run:
        if self.full:
            raise QueueFull("50 runs are waiting already. Please try again in a minute.")
        run_id = f"{next(self._numbers):016x}"  # sweeps ask from threads of their own
        folder = self.folder / run_id
        folder.mkdir(parents=True, exist_ok=True)
        run = Run(
            run_id=run_id, config=config, key=config.key, state="running", created_s=time.time(), run_dir=folder,
            pace=pace, hidden=hidden,  # type: ignore[arg-type]
        )
        self.runs[run_id] = run
        return run

    def end(self, outcome: str = "finished", summary: dict[str, Any] | None = None) -> None:
        """The last run ends, as its record says."""
        run = list(self.runs.values())[-1]
        append_event(run.run_dir, "end", {"outcome": outcome, "expected": True, "t_ms": 1000, "sentence": "", "summary": summary})

    def finish(self) -> None:
        """The processes of the last run are gone too."""
        run_id, run = list(self.runs.items())[-1]
        self.runs[run_id] = dataclasses.replace(run, state="finished")

    def get(self, run_id: str, *, hidden: bool = False) -> Run | None:
        run = self.runs.get(run_id)
        return run if run is None or hidden or not run.hidden else None

    def reveal(self, run_id: str) -> None:
        self.runs[run_id] = dataclasses.replace(self.runs[run_id], hidden=False)

    def recording(self, config: RunConfig) -> Run | None:
        return self.recorded.get(config.key)

    def stop(self, run_id: str, viewer: str) -> None:
        self.runs.pop(run_id, None)

    def measure_in_background(self, configs: Iterable[RunConfig]) -> None:
        self.measured += configs

    def health(self) -> dict[str, Any]:
        return {"status": "ok", "records": "writable", "launcher": "ready", "live": 0, "queued": 0}

    def close(self) -> None:
        """Nothing to end."""


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedRuns]:
    monkeypatch.setenv("SHARDLAB_DATA_DIR", str(tmp_path))
    runs = PretendedRuns(tmp_path / "runs")
    monkeypatch.setattr(runs_module, "_runs", runs)
    close_learning()
    yield runs
    get_sweeps().close()
    close_learning()


@pytest.fixture
def broken_store(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """`broken_store()`: from now on nothing can be read or written."""

    @contextlib.contextmanager
    def refuse(store: Store) -> Iterator[None]:
        raise StoreError(BUSY)
        yield

    def break_it() -> None:
        for name in ("read", "write"):
            monkeypatch.setattr(Store, name, refuse)

    return break_it


@pytest.fixture
def attempts(pretended: PretendedRuns, tmp_path: Path) -> AttemptStore:
    """The store that the pages of this test use."""
    return AttemptStore(tmp_path)


@pytest.fixture
def lesson_page(pretended: PretendedRuns) -> Callable[..., AppTest]:
    """`lesson_page(attempt="...")`: the lesson, opened with these parameters in its URL."""

    def open_one(**query: str) -> AppTest:
        page = AppTest.from_file(str(ROOT / "pages/navigation.py"), default_timeout=20)
        for name, value in query.items():
            page.query_params[name] = value
        page.run()
        page.switch_page("lesson.py").run()
        assert not page.exception
        return page

    return open_one


@pytest.fixture
def lab_page(pretended: PretendedRuns) -> Callable[..., AppTest]:
    """`lab_page(gpu="...")`: the lab, opened with these parameters in its URL."""

    def open_one(**query: str) -> AppTest:
        page = AppTest.from_file(str(ROOT / "pages/navigation.py"), default_timeout=20)
        for name, value in query.items():
            page.query_params[name] = value
        page.run()
        page.switch_page("lab.py").run()
        assert not page.exception
        return page

    return open_one
