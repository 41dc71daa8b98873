"""Runs of a warm launcher of one's own, and when what of them happened."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scenarios.record import COMPUTED, EVENTS
from scenarios.runs import Run, Runs
from scenarios.settings import Settings

LIMIT_S = 120.0


@contextmanager
def warm_runs() -> Iterator[Runs]:
    """Runs in a temporary folder, with a launcher that has finished importing."""
    with tempfile.TemporaryDirectory() as name:
        runs = Runs(Settings(data_dir=Path(name), live_runs=1))
        try:
            wait_for(lambda: runs.health()["launcher"] == "ready")
            yield runs
        finally:
            runs.close()


def wait_for(true: Callable[[], object]) -> float:
    """Seconds on the monotonic clock when `true()` first was."""
    deadline = time.monotonic() + LIMIT_S
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {LIMIT_S:.0f} s")
        time.sleep(0.002)
    return time.monotonic()


def recorded(run: Run, text: str) -> bool:
    """Whether the record so far has `text` in an event."""
    path = run.run_dir / EVENTS
    return path.exists() and text in path.read_text()


def first_step_s(run: Run) -> float:
    """When the first rank reported its first step: DDP has then reduced the gradients of all of them."""
    return wait_for(lambda: recorded(run, '"state":"running"'))


def computed_s(run: Run) -> float:
    return wait_for((run.run_dir / COMPUTED).exists)


def over(runs: Runs, run: Run) -> None:
    def is_over() -> bool:
        now = runs.get(run.run_id)
        return now is None or now.over

    wait_for(is_over)
