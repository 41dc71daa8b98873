"""What the server has beside its pages: the live feed's routes, and what starts and ends with it.

Owns the life of the process. Must not draw anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from lessons import Fault, NoLessonsError, load_lessons
from lessons.classroom import close_classroom
from lessons.experiments import shown_experiments
from lessons.learning import close_learning, get_learning
from lessons.store import StoreError
from pages.account_return import AccountReturn
from pages.classroom.instructor import get_instructors
from pages.classroom.rehearsal import end_all
from pages.classroom.routes import ClassRoutes
from pages.continue_link import continue_routes
from pages.front_door import FrontDoor
from pages.static_files import StaticFiles
from scenarios.catalog import SCENARIOS
from scenarios.cluster.collect_route import collect_routes
from scenarios.config import RunConfig
from scenarios.feed import live_routes
from scenarios.runs import get_runs
from scenarios.settings import load_settings
from scenarios.sweeps import get_sweeps

PAGE_NAMES = ("course", "lesson", "mystery", "progress", "teach", "finder", "symptoms", "lab", "how", "machine")
"""Addresses of the pages in navigation.py, but for the first one."""

CLASS_PAGES = re.compile(r"/(c|class|class-assets|instructor)(/|$)")
"""Addresses of the pages of a class, which have no Streamlit in them."""

STYLE = Path(__file__).with_name("theme.css")

COLLECT_EVERY_S = 20.0
"""Streamlit's own collection after every script run is switched off in config.toml."""


_classes: ClassRoutes | None = None


def routes() -> list[BaseRoute]:
    """Everything that is served without a Streamlit session."""
    global _classes
    _classes = ClassRoutes(load_settings())
    return [
        *live_routes(get_runs(), health=health, by_class=_classes.feed.on), *collect_routes(get_runs()),
        *continue_routes(lambda: get_learning().learners), *_classes.routes(),
    ]


def health() -> dict[str, Any]:
    """What /healthz answers: the runs, how many lessons can be shown, and the store.

    A server without a lesson, with a broken one, or whose store cannot be reached, is degraded. A lesson that is still to be written is
    left out and counts as nothing: a folder of imported questions is in order.
    """
    found = get_runs().health()
    try:
        lessons = load_lessons()
        shown, faults = len(lessons.lessons), _faults(lessons.faults)
    except NoLessonsError as error:
        shown, faults = 0, _faults(error.faults)
    try:
        store = get_learning().health()
    except StoreError as fault:
        store = str(fault)
    well = shown and not faults and store == "ok"
    return {**found, "status": found["status"] if well else "degraded", "lessons": shown, "lesson_faults": faults, "store": store}


def _faults(found: Sequence[Fault]) -> int:
    return sum(fault.kind == "fault" for fault in found)


def middleware() -> list[Middleware]:
    """What every request passes."""
    style = STYLE.read_text(encoding="utf-8")
    door = Middleware(
        FrontDoor, page_names=PAGE_NAMES, title="Shardlab", style=style, is_dead=lambda token: get_learning().learners.is_dead(token),
        apart=CLASS_PAGES,
    )
    return [Middleware(StaticFiles), Middleware(AccountReturn), door]


@contextlib.asynccontextmanager
async def lifespan(_: Any) -> AsyncIterator[dict[str, Any] | None]:
    """Warm the launcher, open the store, measure each experiment once on a fresh machine, collect garbage on a timer.

    At the end all runs end. A store that cannot be opened is said by /healthz and by every page that needs it.
    """
    runs = get_runs()
    with contextlib.suppress(StoreError):
        await asyncio.to_thread(get_learning)
    if runs.settings.measure_at_start:
        runs.measure_in_background(_experiments())
    collector = asyncio.create_task(_collect())
    await asyncio.to_thread(_tell_key)
    try:
        yield None
    finally:
        collector.cancel()
        await asyncio.to_thread(end_all)
        if _classes is not None:
            await _classes.close()
        await asyncio.to_thread(get_sweeps().close)
        await asyncio.to_thread(runs.close)
        close_classroom()
        close_learning()


def _tell_key() -> None:
    """Whoever starts the server is told how instructors sign in; a key that they chose themselves is not repeated."""
    settings = load_settings()
    key = "the key in SHARDLAB_INSTRUCTOR_KEY" if settings.instructor_key else f"the key {get_instructors().key}"
    where = settings.public_url or f"http://localhost:{st.get_option('server.port')}"
    print(f"  Instructors sign in at {where}/teach with {key}", flush=True)


def _experiments() -> Iterator[RunConfig]:
    """Each once, first what the catalog has (whoever writes a lesson waits for that lesson's only), then what lessons make of it."""
    catalog = () if load_settings().preview else SCENARIOS
    configs = {config.key: config for config in (RunConfig.parse({"scenario": name}) for name in catalog)}
    with contextlib.suppress(NoLessonsError):  # /healthz says so
        for lesson in load_lessons().lessons:
            configs |= {config.key: config for config in map(lesson.config_of, shown_experiments(lesson))}
    yield from configs.values()


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
