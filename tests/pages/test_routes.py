"""What a visitor reads where a page could not be drawn."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lessons import Fault, LessonSet, NoLessonsError, load_lessons
from lessons.learning import close_learning
from lessons.store import STORE_FILE
from pages import routes
from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.settings import Settings


@pytest.mark.parametrize(
    ("error", "words"),
    [(NoLessonsError((), Path("lessons/content")), "python -m lessons check"), (RuntimeError("at /srv/secret"), "not yours")],
)
def test_a_fault_is_a_sentence_without_its_traceback(monkeypatch: pytest.MonkeyPatch, error: Exception, words: str) -> None:
    shown: list[str] = []
    monkeypatch.setattr(routes.st, "error", lambda text, icon=None: shown.append(text))
    assert routes.log_script_error(error) is True
    assert len(shown) == 1
    assert words in shown[0]
    assert "secret" not in shown[0]


def test_health_counts_lessons_and_says_when_something_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class _Well:
        def health(self) -> dict[str, Any]:
            return {"status": "ok", "live": 0}

    fault = Fault(file="a/lesson.md", line=3, message="at /srv/secret")
    monkeypatch.setenv("SHARDLAB_DATA_DIR", str(tmp_path))
    close_learning()
    monkeypatch.setattr(routes, "get_runs", _Well)
    assert routes.health() == {"status": "ok", "live": 0, "lessons": len(load_lessons().lessons), "lesson_faults": 0, "store": "ok"}

    monkeypatch.setattr(routes, "load_lessons", lambda: LessonSet(lessons=load_lessons().lessons, faults=(fault,)))
    found = routes.health()
    assert (found["status"], found["lesson_faults"]) == ("degraded", 1)
    assert "secret" not in str(found)
    to_do = dataclasses.replace(fault, kind="to do")
    monkeypatch.setattr(routes, "load_lessons", lambda: LessonSet(lessons=load_lessons().lessons, faults=(to_do,)))
    assert (routes.health()["status"], routes.health()["lesson_faults"]) == ("ok", 0), "a lesson to be written is no fault"

    def none() -> LessonSet:
        raise NoLessonsError((fault,), Path("lessons/content"))

    monkeypatch.setattr(routes, "load_lessons", none)
    assert (routes.health()["status"], routes.health()["lessons"]) == ("degraded", 0)
    monkeypatch.undo()
    monkeypatch.setattr(routes, "get_runs", _Well)
    close_learning()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / STORE_FILE).write_bytes(b"this is not a database, " * 200)
    monkeypatch.setenv("SHARDLAB_DATA_DIR", str(tmp_path / "damaged"))
    found = routes.health()
    assert (found["status"], "damaged" in found["store"]) == ("degraded", True)
    close_learning()


def measured_at_start(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> list[RunConfig]:
    """What a server with these settings runs in the background of its start."""
    asked: list[RunConfig] = []
    runs = SimpleNamespace(settings=Settings(**settings), measure_in_background=asked.extend, close=lambda: None)
    monkeypatch.setattr(routes, "get_runs", lambda: runs)
    monkeypatch.setattr(routes, "get_sweeps", lambda: SimpleNamespace(close=lambda: None))

    async def set_up() -> None:
        async with routes.lifespan(None):
            pass

    asyncio.run(set_up())
    return asked


def test_a_server_can_be_told_to_measure_nothing_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured_at_start(monkeypatch)
    assert measured_at_start(monkeypatch, measure_at_start=False) == []


def test_what_lessons_make_of_the_catalog_is_measured_at_set_up_too(monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = load_lessons().lessons[0]
    spin = RunConfig.parse({"scenario": "rank0_loading", "hand_off": "nccl"})
    own = dataclasses.replace(lesson, experiments={"spin": spin}, fix="spin")
    monkeypatch.setattr(routes, "load_lessons", lambda: LessonSet(lessons=(lesson, own), faults=()))
    asked = measured_at_start(monkeypatch)
    assert {config.scenario for config in asked} == set(SCENARIOS)
    assert asked.count(spin) == 1
    assert len(asked) == len(SCENARIOS) + 1
