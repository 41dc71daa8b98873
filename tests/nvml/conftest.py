"""Runs code under the stub of NVML: in a process of its own, since pynvml loads its library once and keeps it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.nvml.build import ROOT, library_folder

CUDA = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")


@pytest.fixture
def nvml_env(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """`nvml_env("gpus 2\\ngpu 0 util 98")`: the environment in which libnvidia-ml.so.1 is the stub with this script."""

    def environment(script: str = "", *, api: str = "current") -> dict[str, str]:
        path = tmp_path / "nvml.script"
        path.write_text(script)
        kept = {name: value for name, value in os.environ.items() if name not in CUDA}
        return {**kept, "LD_LIBRARY_PATH": str(library_folder(api)), "NVML_STUB_SCRIPT": str(path)}

    return environment


@pytest.fixture
def under_stub(nvml_env: Callable[..., dict[str, str]]) -> Callable[..., Any]:
    """`under_stub(script, code)`: runs `code` and returns what it prints, as JSON."""

    def run(script: str, code: str, *, api: str = "current", env: dict[str, str] | None = None) -> Any:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env={**nvml_env(script, api=api), **(env or {})},
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
