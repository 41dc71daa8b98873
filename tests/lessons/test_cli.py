"""`python -m lessons check`: what it prints, its exit codes, and claims judged on (given) runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lessons import check_runs
from lessons.check_runs import Measure, check_lesson
from lessons.claim_fields import check_fields, summary_fields
from lessons.cli import FAULTY, UNUSABLE, WELL, main
from lessons.loader import CONTENT
from lessons.model import Claim, Lesson
from scenarios.config import RunConfig


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

    def measure(config: RunConfig) -> dict[str, Any]:
        asked.append(config.scenario)
        return runs[config.scenario]

    checked = check_lesson(small, measure)
    assert sorted(asked) == ["rank0_loading", "unsharded"]
    lines = [cause.line for cause in small.causes for _ in ("matches", "draws")]
    assert [(one.line, one.holds) for one in checked] == [(7, True), (8, False), (9, False), *((line, True) for line in lines)]
    assert all(lines)
    assert "steps is 10, 2 * rank0_loading.steps is 20" in str(checked[1])
    assert "no field 'stepps'" in str(checked[2])

    runs["rank0_loading"] = _summary([99.0] * 8)
    broken = [one for one in check_lesson(small, measure) if not one.holds and one.scenario == "rank0_loading"]
    assert [one.message.split(":")[0] for one in broken] == ["matches_question of k2 is true", "draws of k2 is only0"]


def test_a_run_that_did_not_end_well_is_a_broken_statement(lesson: Lesson) -> None:
    checked = check_lesson(lesson, lambda config: "its run ended as failed without figures")
    assert {one.holds for one in checked} == {False}
    assert {one.scenario for one in checked} >= {"sharded", "unsharded"}


def test_what_a_run_measures_is_named_as_in_claims(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[RunConfig] = []

    @contextmanager
    def measuring(*_: object) -> Iterator[Measure]:
        def measure(config: RunConfig) -> Any:
            asked.append(config)
            whole = {**summary_fields(), **_summary([95.5] + [10.0] * 7), "replica_checksums": ["a"] * 8, "unique_fraction": 0.125}
            return whole if config.scenario == "sharded" else "its run ended as failed without figures"

        yield measure

    monkeypatch.setattr(check_runs, "measuring", measuring)
    folder = str(CONTENT / "one-busy-gpu")
    assert main(["figures", folder, "sharded"]) == WELL
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "sharded"
    assert "    gpus.gpu_util = 95.5, 10, 10, 10, 10, 10, 10, 10" in lines
    assert "    distinct(replica_checksums) = 1" in lines
    assert "    samples_per_second = not measured" in lines
    assert lines[-1] == "    draws: only0"
    for line in lines[1:-1]:
        check_fields(f"{line.strip().split(' = ')[0]} == 1", ())
    assert main(["figures", folder]) == FAULTY
    assert "its run ended as failed" in capsys.readouterr().out
    assert {config.scenario for config in asked} >= {"sharded", "large_batch", "unsharded"}


@pytest.mark.parametrize(("arguments", "message"), [
    ([str(CONTENT)], "must be the folder of one lesson"), (["/nowhere"], "must be a folder"),
    ([str(CONTENT / "one-busy-gpu"), "nonsense"], "EXPERIMENT='nonsense': must be one of large_batch"),
])
def test_figures_of_nothing_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figures", *arguments]) == UNUSABLE
    assert message in capsys.readouterr().err


def test_one_lesson_can_be_checked_by_its_own_folder(content: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (content / "bad").mkdir()
    assert main(["check", str(content / "one-busy-gpu")]) == WELL
    assert "bad" not in capsys.readouterr().out
