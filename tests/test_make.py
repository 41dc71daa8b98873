"""The commands the README promises exist, do what they say, and need nothing that a new machine lacks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def planned(*arguments: str) -> str:
    """What make would run. MAKEFLAGS of the make that runs these tests must not leak in."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PORT"))}
    result = subprocess.run(["make", "--no-print-directory", "-n", *arguments], cwd=ROOT, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_run_serves_on_8501_unless_told_otherwise() -> None:
    assert "streamlit run app.py --server.port 8501" in planned("run")
    assert "--server.port 9000" in planned("run", "PORT=9000")


def test_test_installs_what_it_needs_and_runs_every_test() -> None:
    steps = planned("test")
    assert steps.index("tests.browser.chromium") < steps.index("-m pytest")
    assert steps.index("tests.postgres") < steps.index("-m pytest")
    assert steps.index("tests.nvml.build") < steps.index("-m pytest")
    assert "--reruns 1 --rerun-show-tracebacks" in steps  # and the summary says who needed it, and why
    assert "--numprocesses 2 " in steps  # tests/conftest.py says which takes what


def test_bench_runs_every_benchmark() -> None:
    assert "tests/benchmarks/[a-z]*.py" in planned("bench")
    assert {"cold_start.py", "join.py", "memory.py"} <= {path.name for path in (ROOT / "tests/benchmarks").glob("[a-z]*.py")}


@pytest.mark.parametrize(("script", "shell"), [(".ci/run", "bash"), (".ci/debian", "sh")])
def test_the_scripts_parse(script: str, shell: str) -> None:
    assert subprocess.run([shell, "-n", str(ROOT / script)], capture_output=True).returncode == 0


def test_too_old_a_python_is_refused_in_one_line(tmp_path: Path) -> None:
    copy = tmp_path / "project"
    copy.mkdir()
    for name in ("Makefile", "requirements.txt", "requirements-dev.txt", "requirements-dev-bare.txt"):
        (copy / name).write_text((ROOT / name).read_text())
    result = subprocess.run(["make", "PYTHON=", "setup"], cwd=copy, capture_output=True, text=True)
    assert result.returncode == 2
    assert "needs Python 3.11 or newer" in result.stderr
