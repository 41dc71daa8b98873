"""A lesson page under AppTest, through navigation.py, with records in place of real runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import pages.lesson_state
import scenarios.runs
from lessons import Lesson, load_lessons
from lessons.attempts import Attempt, AttemptStore
from scenarios.active_run import Run
from scenarios.config import RunConfig
from scenarios.record import append_event, end_of

NAVIGATION = Path(__file__).resolve().parents[2] / "pages" / "navigation.py"


class RecordedRuns:
    """Stands for `Runs`: starts nothing, writes what a run would have written. `full` refuses every further run."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.started: list[RunConfig] = []
        self.paces: list[str] = []
        self.stopped: list[tuple[str, str]] = []
        self.full = False
        self._runs: dict[str, tuple[RunConfig, str]] = {}

    def start(self, config: RunConfig, *, viewer: str, pace: str = "live", priority: str = "visitor") -> Run:
        if self.full:
            raise scenarios.runs.QueueFull("50 runs are waiting already; please try again in a minute.")
        run_id = f"run{len(self._runs):013d}"
        self._runs[run_id] = (config, pace)
        self.started.append(config)
        self.paces.append(pace)
        folder = self.data_dir / "runs" / run_id
        folder.mkdir(parents=True)
        append_event(folder, "state", {"state": "running"})
        found = self.get(run_id)
        assert found is not None
        return found

    def end(self, run_id: str, outcome: str = "finished", **changes: Any) -> None:
        """Write the run's end."""
        gpus = [{"rank": rank, "gpu_util": 30.0 if rank else 89.0, "memory_gib": 13.0} for rank in range(8)]
        summary = {
            "outcome": outcome, "source": "virtual", "gpus": gpus, "epoch_seconds": 12.0, "epoch_measured": True, "epochs_seen": 1.0,
            "speedup_vs_one_gpu": 2.5, "replica_checksums": ["a"] * 8, "peak_memory_gib": 13.0, "memory_limit_gib": 79.0, "virtual_s": 12.0,
            "unique_fraction": 1.0, "steps_per_epoch": 26,
        } | changes  # fmt: skip
        known = outcome in ("finished", "out_of_memory")
        append_event(
            self.data_dir / "runs" / run_id, "end",
            {"outcome": outcome, "expected": known, "t_ms": 12000, "sentence": "", "rank": None, "error": None,
             "summary": summary if known else None},
        )  # fmt: skip

    def get(self, run_id: str) -> Run | None:
        if run_id not in self._runs:
            return None
        config, pace = self._runs[run_id]
        folder = self.data_dir / "runs" / run_id
        end = end_of(folder)
        state: Any = end["outcome"] if end else "running"
        return Run(run_id=run_id, config=config, key=config.key, state=state, created_s=time.time(), run_dir=folder, pace=pace)  # type: ignore[arg-type]

    def recording(self, config: RunConfig) -> Run | None:
        """The newest equal run that ended as it should."""
        equal = [self.get(run_id) for run_id, (own, _) in self._runs.items() if own.key == config.key]
        return next((run for run in reversed(equal) if run and run.state in ("finished", "out_of_memory")), None)

    def stop(self, run_id: str, viewer: str) -> None:
        self.stopped.append((run_id, viewer))


@pytest.fixture
def lesson() -> Lesson:
    return load_lessons().lessons[0]


@pytest.fixture
def recorded_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordedRuns]:
    """Every page and part asks these runs, and keeps attempts beside them."""
    runs = RecordedRuns(tmp_path)
    monkeypatch.setenv("SHARDLAB_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(scenarios.runs, "_runs", runs)
    pages.lesson_state.store.clear()
    yield runs
    pages.lesson_state.store.clear()


@pytest.fixture
def store(recorded_runs: RecordedRuns) -> AttemptStore:
    return AttemptStore(recorded_runs.data_dir)


@pytest.fixture
def open_lesson(recorded_runs: RecordedRuns) -> Callable[..., AppTest]:
    """`open_lesson(attempt=token, **query)`: the lesson page as a new visitor's session sees it."""

    def open_one(**query: str) -> AppTest:
        page = AppTest.from_file(str(NAVIGATION), default_timeout=30)
        page.switch_page("lesson.py")
        for name, value in query.items():
            page.query_params[name] = value
        page.run()
        assert not page.exception
        return page

    return open_one


@pytest.fixture
def at_stage(lesson: Lesson, store: AttemptStore, recorded_runs: RecordedRuns) -> Callable[..., Attempt]:
    """`at_stage("run", right=False)`: an attempt that has come so far, with the run of its cause under way or ended."""

    def bring(stage: str, *, right: bool = True) -> Attempt:
        option = lesson.key if right else next(option for option in lesson.options if not option.right)
        attempt = store.lock_in(store.start(lesson.id), lesson, option.id, "fairly")
        if stage == "predict":
            return attempt
        attempt = store.predict(attempt, "only0")
        cause = lesson.cause(option.causes[0])
        assert cause is not None
        run = recorded_runs.start(RunConfig.parse({"scenario": cause.scenario}), viewer=attempt.token)
        attempt = store.record_run(attempt.token, lesson, cause.id, run.run_id)
        if stage == "run":
            return attempt
        recorded_runs.end(run.run_id)
        attempt = store.see_verdict(attempt)
        return store.explain(attempt, lesson) if stage == "explained" else attempt

    return bring
