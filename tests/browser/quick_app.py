"""The app with quick runs, for walks through it: an experiment that is on record is shown from there, another is computed at full speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from pages.routes import lifespan, log_script_error, middleware, routes
from scenarios.config import RunConfig
from scenarios.runs import Run, Runs

_start = Runs.start


def _quick(self: Runs, config: RunConfig, *, viewer: str, pace: str = "live", **more: Any) -> Run:
    return self.recording(config) or _start(self, config, viewer=viewer, pace="fast", **more)


Runs.start = _quick  # type: ignore[method-assign]

app = st.App(
    Path(__file__).resolve().parents[2] / "pages/navigation.py",
    routes=routes(), middleware=middleware(), lifespan=lifespan, on_script_error=log_script_error,
)
