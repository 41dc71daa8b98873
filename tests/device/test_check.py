"""The check for a machine with a GPU, on one without: it says what is missing, and what it judges is what it should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.device.check_cuda import STEP, judged

ROOT = Path(__file__).resolve().parents[2]


def test_without_a_gpu_it_is_one_sentence() -> None:
    command = [sys.executable, "-m", "tests.device.check_cuda"]
    ran = subprocess.run(command, cwd=ROOT, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.startswith("This check needs a GPU that runs can use. ")


def test_each_figure_is_held_to_what_is_promised() -> None:
    figures = {"gpu_util": 95.0, "memory_gib": 20.0, "power_w": 600.0}
    good: dict[str, Any] = {"outcome": "finished", "source": "nvml", "unique_fraction": 1.0, **figures}
    runs: dict[str, dict[str, Any]] = {
        "sharded": good, "tiny_model": good, "large_batch": {**good, "outcome": "out_of_memory", "exit": 0}
    }
    assert all(judged(runs, {"slower_pct": 0.4}).values())
    assert [name for name, holds in judged(runs, {"slower_pct": 1.4}).items() if not holds] == ["sampling slows training by 1 % at most"]
    virtual = {**runs, "sharded": {**good, "source": "virtual"}}
    assert not judged(virtual, {"slower_pct": 0.0})["samples come from NVML"]
    assert not judged({**runs, "large_batch": good}, {"slower_pct": 0.0})["large_batch runs out of memory for real"]


def test_times_are_read_as_the_script_prints_them() -> None:
    assert STEP.findall("Real GPUs, since 1\nstep 3 at 0.41 s, batch 256\nstep 4 at 0.52 s, batch 256\n") == [("3", "0.41"), ("4", "0.52")]
