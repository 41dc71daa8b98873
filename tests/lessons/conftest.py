"""The first lesson and a writable copy of it, for the tests of this room."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lessons.loader import CONTENT, load_lessons
from lessons.model import Lesson


@pytest.fixture(scope="session")
def lesson() -> Lesson:
    found = load_lessons().get("one-busy-gpu")
    assert found is not None
    return found


@pytest.fixture
def content(tmp_path: Path) -> Path:
    """A copy of the lessons that a test may break."""
    root = tmp_path / "content"
    shutil.copytree(CONTENT, root)
    return root
