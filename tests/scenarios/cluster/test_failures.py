"""What the classic mistakes look like in a record, as gloo on one machine can show them: outcome, real error text, what it means."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scenarios.record import end_of

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The end of a run of each mistake; torch is imported once for all of them."""
    folder = tmp_path_factory.mktemp("failing")
    command = [sys.executable, "-m", "tests.scenarios.cluster.failing_runs", str(folder)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(command, cwd=ROOT, env=env, check=True, timeout=100, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = {path.name: end_of(path) for path in folder.iterdir() if path.is_dir()}
    return {name: end for name, end in found.items() if end is not None}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "outcome", "error", "sentence", "meaning"),
    [
        (
            "mismatched", "failed", "Received data size doesn't match expected size. Is there a distributed collective mismatch",
            "was killed by signal 6 (SIGABRT): what():", "data of different sizes",
        ),
        (
            "detailed", "failed", "Detected mismatch between collectives on ranks", "Detected mismatch between collectives on ranks",
            "different collectives, or the same one with different shapes",
        ),
        ("uneven", "timeout", "Timed out waiting 2000ms for recv operation", "waited more than 2 s for the others", "has fewer batches"),
        ("branch", "timeout", "Timed out waiting 2000ms for", "waited more than 2 s for the others", "took another path"),
        ("death", "failed", "rank 1 exited with status 9 before it had finished", "Rank 1 exited with status 9", None),
        ("crash", "failed", "rank 1 was killed by signal 11 (SIGSEGV)", "Rank 1 was killed by signal 11", "inside native code"),
        ("bug", "failed", "KeyError: 'lr'", "Rank 1 ended: KeyError: 'lr'.", None),
    ],
)  # fmt: skip
def test_a_mistake_ends_readably(
    ends: dict[str, dict[str, Any]], mistake: str, outcome: str, error: str, sentence: str, meaning: str | None
) -> None:
    end = ends[mistake]
    assert end["outcome"] == outcome
    assert error in end["error"]
    assert sentence in end["sentence"]
    assert str(ROOT) not in end["error"]
    if meaning is None:
        assert end["meaning"] is None
    else:
        assert meaning in end["meaning"]
        assert end["sentence"].endswith(end["meaning"])
    if mistake in ("death", "crash", "bug"):
        assert end["rank"] == 1, "the cause, not the rank that lost its peer"
