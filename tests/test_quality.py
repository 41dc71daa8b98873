"""Lint, types and loose ends of the whole tree, run as tests so that one command says whether the project is in order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Assembled from halves, so that this file does not find itself.
UNFINISHED = re.compile(
    "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3 + r"\b", "Not" + "ImplementedError", r"(mark|test|unittest)\.(sk" + r"ip|xf" + "ail)"])
)
# A new lesson says at each open place that it is open; these files make, find or describe that mark, and are not unfinished themselves.
MARKERS = ("lessons/template/", "lessons/cli.py", "lessons/reading.py", "lessons/exchange/skeleton.py", "docs/write-a-lesson.md",
           "tests/lessons/", "tests/pages/test_preview_bar.py")
MACHINES = ["/wo" + "rk/", "/tm" + "p/w/", "/ro" + "ot/"]
REGISTRIES = ["index-" + "url", "find-" + "links", "py" + r"pi\.org", "download" + r"\.pytorch"]
ELSEWHERE = re.compile("|".join(MACHINES + REGISTRIES))
TEXTS = {".py", ".md", ".toml", ".txt", ".js", ".css", ".html", ".svg", ".yaml", ".yml", ""}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)


def project_files() -> list[Path]:
    """The files git tracks, or would after `git add`, that are text of ours."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.splitlines() if Path(name).suffix in TEXTS and (ROOT / name).is_file()]


def mentions(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    return [
        f"{path.name}:{number}: {line.strip()[:120]}"
        for path in files
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]


def test_ruff() -> None:
    result = run("ruff", "check", ".")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_mypy_strict() -> None:
    result = run("mypy")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
def test_mypy_would_find_an_untyped_function(tmp_path: Path) -> None:
    (tmp_path / "untyped.py").write_text("def double(value):\n    return value * 2\n")
    result = run("mypy", "--config-file", "pyproject.toml", str(tmp_path / "untyped.py"))
    assert result.returncode == 1
    assert "no-untyped-def" in result.stdout


@pytest.mark.parametrize("pattern", [UNFINISHED, ELSEWHERE], ids=["unfinished", "elsewhere"])
def test_no_loose_ends(pattern: re.Pattern[str]) -> None:
    files = project_files()
    assert len(files) > 30
    if pattern is UNFINISHED:
        files = [path for path in files if not path.relative_to(ROOT).as_posix().startswith(MARKERS)]
    assert mentions(pattern, files) == []


def test_a_loose_end_would_be_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("x = 1  # TO" + "DO later\ny = open('/wo" + "rk/data')\n")
    assert mentions(UNFINISHED, [planted]) == ["planted.py:1: x = 1  # TO" + "DO later"]
    assert len(mentions(ELSEWHERE, [planted])) == 1
