"""What the server has beside its pages: the live feed's routes, and what starts and ends with it.

Owns the life of the process. Must not draw anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from lessons import NoLessonsError, load_lessons
from pages.front_door import FrontDoor
from scenarios.catalog import SCENARIOS
from scenarios.cluster.collect_route import collect_routes
from scenarios.config import RunConfig
from scenarios.feed import live_routes
from scenarios.runs import get_runs
from scenarios.sweeps import get_sweeps

PAGE_NAMES = ("lesson", "lab", "how", "machine")
"""Addresses of the pages in navigation.py, but for the first one."""

STYLE = Path(__file__).with_name("theme.css")

COLLECT_EVERY_S = 20.0
"""Streamlit's own collection after every script run is switched off in config.toml."""


def routes() -> list[BaseRoute]:
    """Everything that is served without a Streamlit session."""
    return [*live_routes(get_runs(), health=health), *collect_routes(get_runs())]


def health() -> dict[str, Any]:
    """What /healthz answers: the runs, and how many lessons can be shown. A server without one, or with a broken one, is degraded."""
    found = get_runs().health()
    try:
        lessons = load_lessons()
        shown, faults = len(lessons.lessons), len(lessons.faults)
    except NoLessonsError as error:
        shown, faults = 0, len(error.faults)
    return {**found, "status": "degraded" if faults or not shown else found["status"], "lessons": shown, "lesson_faults": faults}


def middleware() -> list[Middleware]:
    """What every request passes."""
    return [Middleware(FrontDoor, page_names=PAGE_NAMES, title="Shardlab", style=STYLE.read_text(encoding="utf-8"))]


@contextlib.asynccontextmanager
async def lifespan(_: Any) -> AsyncIterator[dict[str, Any] | None]:
    """Warm the launcher, measure each experiment once on a fresh machine, collect garbage on a timer; end all runs at the end."""
    runs = get_runs()
    runs.measure_in_background(RunConfig.parse({"scenario": name}) for name in SCENARIOS)
    collector = asyncio.create_task(_collect())
    try:
        yield None
    finally:
        collector.cancel()
        await asyncio.to_thread(get_sweeps().close)
        await asyncio.to_thread(runs.close)


async def _collect() -> None:
    while True:
        await asyncio.sleep(COLLECT_EVERY_S)
        gc.collect()


def log_script_error(error: Exception) -> bool:
    """Keep the traceback in the server's log and show visitors a sentence instead."""
    logging.getLogger("shardlab").error("a page failed", exc_info=error)
    if isinstance(error, NoLessonsError):
        st.error("There is no lesson to show. Whoever runs this server finds the reason with `python -m lessons check`.")
    else:
        st.error("This page met a fault that is not yours. It was noted; please reload.", icon=":material/error:")
    return True
