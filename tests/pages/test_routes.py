"""What a visitor reads where a page could not be drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from lessons import NoLessonsError
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
