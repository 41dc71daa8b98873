"""The app for a class in a test: it measures a few experiments only, and live runs start as the file `start` in the data folder says.

Without the file as ever; "fail": not at all; "hang": not within the time that a class waits.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import streamlit as st

from lessons import load_lessons
from pages import routes
from pages.classroom import conductor
from pages.classroom import routes as class_routes
from pages.classroom.conductor import Conductor
from scenarios.config import RunConfig
from scenarios.runs import Run, Runs

HANGS_S = 4.0
PATIENCE_S = 60.0
LIMIT_S = conductor.START_LIMIT_S
_start = Runs.start


def _few() -> Iterator[RunConfig]:
    lesson = load_lessons().lessons[0]
    for name in ("rank0_loading", lesson.fix):
        yield lesson.config_of(name)


def _told(runs: Runs) -> str:
    told = runs.settings.data_dir / "start"
    return told.read_text() if told.exists() else ""


def _as_told(self: Runs, config: RunConfig, *, viewer: str, **more: Any) -> Run:
    how = _told(self)
    if how == "fail":
        raise RuntimeError("The launcher does not answer.")
    if how == "hang":
        time.sleep(HANGS_S)
    return _start(self, config, viewer=viewer, **more)


class _Patient(Conductor):
    """Waits for a live run as long as a machine full of other tests needs; for the one that hangs, as long as ever."""

    async def experiment(self, code: str, what: str, **more: Any) -> None:
        conductor.START_LIMIT_S = LIMIT_S if _told(self._runs()) == "hang" else PATIENCE_S
        await super().experiment(code, what, **more)


class_routes.Conductor = _Patient  # type: ignore[misc]
Runs.start = _as_told  # type: ignore[method-assign]
routes._experiments = _few

app = st.App(
    Path(__file__).resolve().parents[2] / "pages/navigation.py",
    routes=routes.routes(), middleware=routes.middleware(), lifespan=routes.lifespan, on_script_error=routes.log_script_error,
)
