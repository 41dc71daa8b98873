"""What a visitor reads where a page could not be drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lessons import Fault, LessonSet, NoLessonsError, load_lessons
from pages import routes


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


def test_health_counts_lessons_and_says_when_something_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    class _Well:
        def health(self) -> dict[str, Any]:
            return {"status": "ok", "live": 0}

    fault = Fault(file="a/lesson.md", line=3, message="at /srv/secret")
    monkeypatch.setattr(routes, "get_runs", _Well)
    assert routes.health() == {"status": "ok", "live": 0, "lessons": len(load_lessons().lessons), "lesson_faults": 0}

    monkeypatch.setattr(routes, "load_lessons", lambda: LessonSet(lessons=load_lessons().lessons, faults=(fault,)))
    found = routes.health()
    assert (found["status"], found["lesson_faults"]) == ("degraded", 1)
    assert "secret" not in str(found)

    def none() -> LessonSet:
        raise NoLessonsError((fault,), Path("lessons/content"))

    monkeypatch.setattr(routes, "load_lessons", none)
    assert (routes.health()["status"], routes.health()["lessons"]) == ("degraded", 0)
