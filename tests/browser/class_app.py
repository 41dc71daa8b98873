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
from scenarios.config import RunConfig
from scenarios.runs import Run, Runs

HANGS_S = 4.0
_start = Runs.start


def _few() -> Iterator[RunConfig]:
    lesson = load_lessons().lessons[0]
    for name in ("rank0_loading", lesson.fix):
        yield lesson.config_of(name)


def _as_told(self: Runs, config: RunConfig, *, viewer: str, **more: Any) -> Run:
    told = self.settings.data_dir / "start"
    how = told.read_text() if told.exists() else ""
    if how == "fail":
        raise RuntimeError("The launcher does not answer.")
    if how == "hang":
        time.sleep(HANGS_S)
    return _start(self, config, viewer=viewer, **more)


Runs.start = _as_told  # type: ignore[method-assign]
routes._experiments = _few

app = st.App(
    Path(__file__).resolve().parents[2] / "pages/navigation.py",
    routes=routes.routes(), middleware=routes.middleware(), lifespan=routes.lifespan, on_script_error=routes.log_script_error,
)
