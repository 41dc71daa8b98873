"""A lesson from nothing: what `new` makes, that only things to do are left in it, and that nothing is overwritten."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from lessons.cli import FAULTY, UNUSABLE, WELL, main
from lessons.loader import load_lessons, read_lessons
from lessons.model import NoLessonsError
from lessons.new import new_lesson
from lessons.preview import command, environment
from scenarios.settings import PROJECT_ROOT, load_settings


def test_a_new_lesson_is_unfinished_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine" / "slow-disk"
    assert main(["new", str(folder), "--title", 'The "disk": slow']) == WELL
    assert str(folder) in capsys.readouterr().out
    found = read_lessons(tmp_path / "mine")
    assert {fault.kind for fault in found.faults} == {"to do"}
    rows = (folder / "lesson.md").read_text().splitlines()
    for fault in found.faults:
        if fault.file.endswith("lesson.md"):
            assert "TODO:" in rows[fault.line - 1]
            assert fault.message in rows[fault.line - 1]
    assert (found.lessons, found.advice) == ((), ())
    with pytest.raises(NoLessonsError):
        load_lessons(tmp_path / "mine")
    lesson = load_lessons(tmp_path / "mine", unfinished=True).lessons[0]
    assert (lesson.id, lesson.title) == ("slow-disk", 'The "disk": slow')
    assert main(["check", str(folder)]) == FAULTY
    out = capsys.readouterr().out
    assert f"{folder}/lesson.md:12: to do: the same symptom told by somebody else" in out
    assert f"slow-disk: unfinished, {len(found.faults)} things to do" in out
    assert f"lessons: 0, faults: 0, to do: {len(found.faults)}" in out


def test_once_all_is_written_a_new_lesson_is_shown(tmp_path: Path) -> None:
    """Every note replaced by words: what the template has beside them is a lesson."""
    folder = new_lesson(tmp_path / "slow-disk")
    path, picture = folder / "lesson.md", folder / "infographic.svg"
    words = " ".join(["word"] * 70)
    text = re.sub(r'"TODO: (?:the same|and told)[^"]*"', f'"{words}"', path.read_text())
    text = re.sub(r'^    text: "TODO: [^"]*"', '    text: "One of four answers, all of a length."', text, flags=re.MULTILINE)
    text = re.sub(r"^TODO: .*$", words, text, flags=re.MULTILINE)
    path.write_text(text.replace("TODO:", "Done:"))
    picture.write_text(picture.read_text().replace("TODO:", "Done:"))
    found = read_lessons(tmp_path)
    assert [str(fault) for fault in (*found.faults, *found.advice)] == []
    assert found.lessons[0].id == "slow-disk"


def test_two_lessons_have_ids_of_their_own_that_tell_nothing(tmp_path: Path) -> None:
    new_lesson(tmp_path / "one")
    new_lesson(tmp_path / "two")
    found = load_lessons(tmp_path, unfinished=True).lessons
    ids = [[option.id for option in lesson.options] + [cause.id for cause in lesson.causes] for lesson in found]
    assert all(len(set(own)) == 8 for own in ids)
    assert ids[0] != ids[1]
    new_lesson(tmp_path / "again" / "one")
    assert [option.id for option in load_lessons(tmp_path / "again", unfinished=True).lessons[0].options] == ids[0][:4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Slow Disk"], "the last part is the lesson's address"),
        (["9-gpus"], "a letter first"),
        (["slow-disk", "--title", " "], "title=' ': must be some words"),
        (["there"], "is there already; nothing was changed"),
        (["a-file"], "is there already; nothing was changed"),
        (["a-file/slow-disk"], "cannot be made: Not a directory"),
    ],
)
def test_what_cannot_be_made_is_one_line(
    tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    Path("there/lesson.md").write_text("mine")
    Path("a-file").write_text("mine")
    assert main(["new", *arguments]) == UNUSABLE
    err = capsys.readouterr().err
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a-file", "lesson.md", "there"]
    assert Path("there/lesson.md").read_text() == "mine"


def test_the_preview_listens_on_this_machine_only_and_keeps_its_answers_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDLAB_DATABASE_URL", "postgresql://u:p@h/d")
    monkeypatch.setenv("SHARDLAB_DATA_DIR", str(tmp_path))
    settings = load_settings({name: value for name, value in environment(tmp_path / "mine").items() if name.startswith("SHARDLAB_")})
    assert (settings.preview, settings.lessons_dir, settings.database_url) == (True, tmp_path / "mine", "")
    assert settings.data_dir == tmp_path / "preview"
    told = command(8600)
    assert told[told.index("--server.address") + 1] == "localhost"
    assert told[told.index("--server.port") + 1] == "8600"


@pytest.mark.parametrize("arguments", [["preview", "/nowhere"], ["preview", "--port", "0"], ["preview", "--port", "many"]])
def test_a_preview_of_nothing_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == UNUSABLE
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_preview_that_is_ended_leaves_no_server_behind(tmp_path: Path, number: signal.Signals) -> None:
    """SIGTERM too: a server left behind would hold the port of the next preview."""
    program = (
        "import sys; from pathlib import Path; from lessons import preview; preview._claimable = lambda port: None\n"
        "preview.command = lambda port: [sys.executable, '-c', 'import os, time; print(os.getpid(), flush=True); time.sleep(60)']\n"
        "sys.exit(preview.preview(Path(sys.argv[1]), None, port=8600))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=PROJECT_ROOT
    ) as terminal:
        assert terminal.stdout is not None
        server = int([terminal.stdout.readline() for _ in range(3)][-1])
        terminal.send_signal(number)
        code = terminal.wait(timeout=20)
        left = psutil.pid_exists(server)
        if left:
            psutil.Process(server).kill()
    assert (code, left) == (0, False)
