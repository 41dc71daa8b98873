"""`python -m lessons check`: what it prints, its exit codes, and claims judged on (given) runs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lessons.check_runs import check_lesson
from lessons.cli import FAULTY, UNUSABLE, WELL, main
from lessons.model import Claim, Lesson


def test_the_built_in_lessons_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == WELL
    assert "one-busy-gpu: well formed" in capsys.readouterr().out


def test_faults_are_printed_with_file_and_line_and_the_exit_code_says_so(content: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = content / "one-busy-gpu" / "lesson.md"
    path.write_text(path.read_text().replace("minutes: 5", "minutes: soon"))
    assert main(["check", str(content)]) == FAULTY
    out = capsys.readouterr().out
    assert f"{path}:4: minutes: " in out
    assert "no lesson could be loaded" in out


def test_json_is_one_object(content: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (content / "bad").mkdir()
    assert main(["check", str(content), "--json"]) == FAULTY
    report = json.loads(capsys.readouterr().out)
    assert report["lessons"] == ["one-busy-gpu"]
    assert {fault["file"] for fault in report["faults"]} == {"bad/lesson.md", "bad/infographic.svg"}


@pytest.mark.parametrize("arguments", [[], ["preach"], ["check", "--fast"], ["check", "/nowhere/at/all"], ["check", "a", "b"]])
def test_unusable_arguments_are_one_line_and_exit_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == UNUSABLE
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_an_empty_folder_is_a_fault(tmp_path: Path) -> None:
    assert main(["check", str(tmp_path)]) == FAULTY


def test_it_runs_as_a_module_without_torch() -> None:
    done = subprocess.run([sys.executable, "-m", "lessons", "check"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    modules = "lessons.cli, lessons.attempts, lessons.public_view, lessons.race, lessons.deep_links, lessons.code_diff"
    script = f"import sys, {modules}; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0


def _summary(utils: list[float | None], **changes: Any) -> dict[str, Any]:
    return {"outcome": "finished", "gpus": [{"gpu_util": util} for util in utils], "steps": 10} | changes


def test_claims_matches_and_pictures_are_judged_on_runs(lesson: Lesson) -> None:
    small = replace(
        lesson, causes=tuple(cause for cause in lesson.causes if cause.id in ("k2", "k9")), race=(), fix="rank0_loading",
        claims=(
            Claim(scenario="rank0_loading", expression="gpus[0].gpu_util >= 90", line=7),
            Claim(scenario="unsharded", expression="steps >= 2 * rank0_loading.steps", line=8),
            Claim(scenario="unsharded", expression="stepps >= 1", line=9),
        ),
    )
    runs = {"rank0_loading": _summary([95.0] + [10.0] * 7), "unsharded": _summary([99.0] * 8)}
    asked: list[str] = []

    def measure(name: str) -> dict[str, Any]:
        asked.append(name)
        return runs[name]

    checked = check_lesson(small, measure)
    assert sorted(asked) == ["rank0_loading", "unsharded"]
    assert [(one.line, one.holds) for one in checked] == [(7, True), (8, False), (9, False), *[(None, True)] * 4]
    assert "steps is 10, 2 * rank0_loading.steps is 20" in str(checked[1])
    assert "no field 'stepps'" in str(checked[2])

    runs["rank0_loading"] = _summary([99.0] * 8)
    broken = [one for one in check_lesson(small, measure) if not one.holds and one.scenario == "rank0_loading"]
    assert [one.message.split(":")[0] for one in broken] == ["matches_question of k2 is true", "draws of k2 is only0"]


def test_a_run_that_did_not_end_well_is_a_broken_statement(lesson: Lesson) -> None:
    checked = check_lesson(lesson, lambda name: "its run ended as failed without figures")
    assert {one.holds for one in checked} == {False}
    assert {one.scenario for one in checked} >= {"sharded", "unsharded"}
