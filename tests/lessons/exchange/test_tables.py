"""Results and coverage as tables: right figures, no token, and nothing that a spreadsheet would execute."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lessons.attempts import Attempt, AttemptStore
from lessons.cli import main
from lessons.exchange.coverage import coverage, coverage_csv, coverage_text
from lessons.exchange.csv_safe import BOM, csv_text
from lessons.exchange.results import ANSWER_COLUMNS, LESSON_COLUMNS, answers_csv, lessons_csv
from lessons.learners import new_token
from lessons.model import Lesson, LessonSet
from lessons.schema import EXAM_DOMAINS

HOSTILE = (
    "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "＝1+1", '=HYPERLINK("https://example.org?"&A1,"click")',
    "=cmd|' /C calc'!A0", "@import", "\x00=1",
)  # fmt: skip


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def _attempt(lesson: Lesson, *answers: str, **changes: object) -> Attempt:
    fields: dict[str, object] = {
        "token": "s3cr3t-token", "lesson_id": lesson.id, "stage": "explained", "version": 5, "answers": answers,
        "certainties": ("certain",) * len(answers), "predictions": ("only0",) * len(answers), "runs": {}, "shown": False,
        "created_s": 0.0, "changed_s": 61.0, "learner_id": 7, "costs": True,
    }
    return Attempt(**fields | changes)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_cell_is_a_formula(text: str) -> None:
    written = csv_text([text], [[text, f"{text};{text}", 'a"b,c\nd']])
    header, cells = csv.reader(io.StringIO(written, newline=""))
    assert header[0].startswith("'")
    assert cells[0].startswith("'")
    assert cells[1].startswith("'")
    assert cells[2] == 'a"b,c\nd'


def test_what_is_no_formula_stays_as_it_is() -> None:
    written = csv_text(["a"], [["Zoë – 100 % = all"], [-6], [0.5], [None], [True], ["x\u202ey\x07z"]], bom=True)
    assert written.startswith(BOM)
    assert written.removeprefix(BOM).split("\r\n") == ["a", "Zoë – 100 % = all", "-6", "0.5", '""', "yes", "x y z", ""]


def test_one_row_per_answer_without_any_token(lesson: Lesson) -> None:
    lessons = LessonSet(lessons=(lesson,), faults=())
    attempts = [_attempt(lesson, "m4", "t2"), _attempt(lesson, "t2", token="other", learner_id=None), _attempt(lesson)]
    text = answers_csv(attempts, lessons, names={"learner-7": "=1+1"})
    assert "s3cr3t" not in text
    rows = _rows(text)
    assert list(rows[0]) == list(ANSWER_COLUMNS)
    assert [(row["try"], row["option"], row["right"], row["marks"]) for row in rows] == [
        ("1", "m4", "no", "-6"), ("2", "t2", "yes", "0.5"), ("1", "t2", "yes", "3"),
    ]
    assert [(row["learner"], row["name"]) for row in rows[:2]] == [("learner-7", "'=1+1")] * 2
    assert rows[2]["learner"] == f"attempt-{rows[2]['attempt']}"
    assert rows[0]["attempt"] == rows[1]["attempt"] != rows[2]["attempt"]
    assert (rows[0]["drew"], rows[0]["prediction_right"], rows[2]["prediction_right"]) == ("all_crash", "no", "yes")
    assert (rows[0]["started_utc"], rows[0]["answered_utc"]) == ("1970-01-01T00:00:00Z", "1970-01-01T00:01:01Z")


def test_the_summary_of_a_lesson(lesson: Lesson) -> None:
    attempts = [
        _attempt(lesson, "t2"), _attempt(lesson, "m4", "t2"), _attempt(lesson, "m4", stage="verdict"), _attempt(lesson, "x8", shown=True),
        _attempt(lesson, stage="question"),
    ]
    row = _rows(lessons_csv(attempts, LessonSet(lessons=(lesson,), faults=())))[0]
    assert list(row) == list(LESSON_COLUMNS)
    assert (row["attempts"], row["answered"], row["finished"]) == ("5", "4", "3")
    assert (row["right_first_pct"], row["right_second_pct"], row["shown_on_request_pct"]) == ("25", "25", "25")
    assert (row["first_answers"], row["most_chosen_wrong"]) == ("m4:2 t2:1 x8:1", "m4")
    assert float(row["mean_marks"]) == pytest.approx((3 - 5.5 - 6 - 6) / 4, abs=0.01)


def test_answers_to_what_is_no_longer_there_are_kept(lesson: Lesson) -> None:
    attempts = [_attempt(lesson, "gone"), _attempt(lesson, "x", lesson_id="old-lesson")]
    rows = _rows(answers_csv(attempts, LessonSet(lessons=(lesson,), faults=())))
    assert [(row["lesson"], row["option"], row["right"], row["marks"]) for row in rows] == [
        (lesson.id, "gone", "", ""), ("old-lesson", "x", "", ""),
    ]
    assert "old-lesson" in lessons_csv(attempts, LessonSet(lessons=(lesson,), faults=()))


def test_gaps_and_thin_domains_are_named(lesson: Lesson) -> None:
    full = replace(lesson, id="full", exam_domains=(*EXAM_DOMAINS[:5], "Our own"))
    table = coverage([replace(lesson, exam_domains=EXAM_DOMAINS[:2]), full, replace(lesson, id="bare", exam_domains=())])
    assert table.domains == (*EXAM_DOMAINS, "Our own")
    assert table.counts == (2, 2, 1, 1, 1, 0, 0, 1)
    assert table.gaps == EXAM_DOMAINS[5:]
    assert table.sentences == (
        "No lesson covers Fault finding and Optimization.",
        "Only one lesson covers Data loading, Memory, Communication and Our own.", "Without a domain: bare.",
    )
    assert "Fault finding           0  GAP: no lesson" in coverage_text(table)
    rows = _rows(coverage_csv(table))
    assert [row["lesson"] for row in rows] == [lesson.id, "full", "bare", "", ""]
    assert rows[-1][EXAM_DOMAINS[5]] == "gap"
    assert coverage([full, replace(full, id="two", exam_domains=(*EXAM_DOMAINS, "Our own"))]).gaps == ()


def test_the_command_line(
    tmp_path: Path, lesson: Lesson, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHARDLAB_DATA_DIR", str(tmp_path / "data"))
    for kind, words in (("csv-answers", "csv-answers, 0 rows: nothing has been answered yet"), ("moodle", "1 lesson as moodle")):
        assert main(["export", "--format", kind, lesson.id, "-o", str(tmp_path / kind)]) == 0
        assert capsys.readouterr().err == f"{tmp_path / kind}: {words}\n"
    store = AttemptStore(tmp_path / "data")
    learner = new_token()
    store.lock_in(store.start(lesson.id, learner=learner), lesson, "m4", "fairly", learner=learner)
    store.close()
    told: dict[str, str] = {}
    for kind in ("moodle", "gift", "coverage", "csv-coverage", "csv-answers", "csv-lessons"):
        assert main(["export", "--format", kind, lesson.id, "-o", str(tmp_path / kind), "--bom"]) == 0
        told[kind] = (tmp_path / kind).read_bytes().decode()
        written = f"{kind}, 1 row" if kind in ("csv-answers", "csv-lessons") else f"1 lesson as {kind}"
        assert capsys.readouterr().err == f"{tmp_path / kind}: {written}\n"
    assert learner not in told["csv-answers"]
    assert _rows(told["csv-answers"].removeprefix(BOM))[0]["option"] == "m4"
    assert _rows(told["csv-lessons"].removeprefix(BOM))[0]["answered"] == "1"
    assert main(["import", str(tmp_path / "gift"), "--into", str(tmp_path / "course")]) == 0
    told_of = capsys.readouterr()
    assert f"{tmp_path / 'course' / lesson.id}: {lesson.title}" in told_of.out
    assert told_of.err.startswith("1 lesson begun in ")
    (tmp_path / "bad").write_text("Q {=a =b}")
    assert main(["import", str(tmp_path / "bad"), "--into", str(tmp_path / "course")]) == 1
    assert "bad:1: question 'Q': is a short-answer question" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["export"], ["export", "--format", "pdf"], ["export", "--format", "gift", "no-such-lesson"], ["import"], ["import", "/nowhere.xml"],
        ["import", __file__, "--into", __file__],
    ],
)
def test_unusable_arguments_are_one_line_and_exit_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_every_attempt_is_read_oldest_first(opened: Callable[..., object], lesson: Lesson) -> None:
    store = AttemptStore(opened())
    tokens = [store.start(lesson.id).token, store.start("another", learner=new_token()).token]
    assert [attempt.token for attempt in store.all()] == tokens
