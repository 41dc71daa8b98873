"""The preview without a browser: faults with their line, every stage in one click, an edit seen at the next look."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lessons import loader
from lessons.attempts import AttemptStore
from lessons.new import new_lesson
from pages.preview_bar import STAGES, put_at
from tests.pages.conftest import ROOT, PretendedRuns
from tests.pages.test_lesson_page import html_of, labels, press


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretended: PretendedRuns) -> Path:
    """A new lesson that the app previews."""
    made = new_lesson(tmp_path / "mine" / "slow-disk", "A slow disk")
    monkeypatch.setenv("SHARDLAB_LESSONS_DIR", str(tmp_path / "mine"))
    monkeypatch.setenv("SHARDLAB_PREVIEW", "1")
    monkeypatch.setattr(loader, "LOOK_EVERY_S", 0.0)
    return made


def _open(**query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages/navigation.py"), default_timeout=20)
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    page.switch_page("lesson.py").run()
    assert not page.exception
    return page


def test_an_unfinished_lesson_is_shown_with_what_is_to_do(folder: Path) -> None:
    page = _open(lesson="slow-disk")
    assert "A slow disk" in html_of(page)
    assert "Lock in my answer" in labels(page)
    assert "<code>slow-disk/lesson.md:12</code> to do: the same symptom told by somebody else" in html_of(page)
    text = (folder / "lesson.md").read_text()
    (folder / "lesson.md").write_text(text.replace("TODO: what somebody sees", "The disk lamp never goes out. TODO: what somebody sees"))
    page.run()
    assert "The disk lamp never goes out" in html_of(page)


@pytest.mark.parametrize(("broken", "line"), [("minutes: 5|minutes: soon", 4), ("---\n|-\n", 1), ("fix: sharded|fix: nothing", 70)])
def test_a_broken_lesson_says_where_and_comes_back(folder: Path, broken: str, line: int) -> None:
    text = (folder / "lesson.md").read_text()
    (folder / "lesson.md").write_text(text.replace(*broken.split("|"), 1))
    page = _open(lesson="slow-disk")
    assert f"slow-disk/lesson.md:{line}</code>" in html_of(page)
    assert "cannot be shown" in html_of(page)
    assert "Lock in my answer" not in labels(page)
    (folder / "lesson.md").write_text(text)
    page.run()
    assert "Lock in my answer" in labels(page)


def test_another_lesson_with_faults_does_not_stand_in_the_way(folder: Path) -> None:
    (folder.parent / "bad").mkdir()
    page = _open(lesson="slow-disk")
    assert "2 more to mend or to do in other lessons" in html_of(page)
    assert "bad/lesson.md" not in html_of(page)
    assert "Lock in my answer" in labels(page)
    page = _open(lesson="bad")
    assert "bad/lesson.md:1</code> the file is missing" in html_of(page)
    assert "Lock in my answer" not in labels(page)


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_reached_by_the_way_of_a_learner(folder: Path, attempts: AttemptStore, stage: str) -> None:
    lesson = loader.load_lessons().lessons[0]
    attempt = put_at(attempts, lesson, stage)
    expected = "question" if stage.startswith("wording") else stage
    assert attempt.stage == expected
    assert attempts.get(attempt.token) == attempt
    assert attempt.wording == (int(stage[-1]) if stage.startswith("wording") else None)


def test_a_stage_is_one_click_away(folder: Path) -> None:
    page = press(_open(lesson="slow-disk"), "Explained")
    assert [tab.label for tab in page.tabs][:1] == ["Why"]
    page = press(page, "Second wording")
    assert "TODO: the same symptom told by somebody else" in html_of(page)
    assert "Lock in my answer" in labels(page)


def test_without_the_setting_there_is_no_bar(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHARDLAB_PREVIEW")
    page = _open()
    assert "Explained" not in labels(page)
    assert "A slow disk" not in html_of(page), "it is unfinished, and left out"
