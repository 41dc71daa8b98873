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

from scenarios.nvml.reading import Reading
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


WATCH = """
import ctypes, json, os, sys
import pynvml
from scenarios.nvml.inventory import take_inventory
from scenarios.nvml.library import open_nvml
from scenarios.nvml.sampler import TICK_US, Watch, start_event
from scenarios.nvml.visible import visible

start_us, ticks, ours_us, late_us = map(int, sys.argv[1:])
open_nvml()

def at(us):
    pynvml.nvmlLib.shardlab_stub_set_us(ctypes.c_uint64(us))
    return us + ours_us

now_us = at(start_us + late_us)
chosen = visible(take_inventory().gpus, os.environ)
watch = Watch(chosen.targets, now_us=now_us - late_us, clock=lambda: now_us)
events = [start_event(chosen.targets, chosen.notes, watch)]
for number in range(1, ticks + 1):
    now_us = at(start_us + number * TICK_US)
    events += watch.tick(now_us)
events += watch.finish(now_us)
print(json.dumps({"events": events, "gaps": watch.gaps(), "alive": watch.alive}))
"""


class Watched:
    """What a sampler said of the stub, whose time was moved by hand from `start_s` in steps of one tick."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.start = data["events"][0]
        self.events = data["events"]
        self.gaps = {int(rank): gaps for rank, gaps in data["gaps"].items()}
        self.alive = data["alive"]
        self.ticks = [event for event in self.events if event["event"] == "tick"]
        self.lost = [event for event in self.events if event["event"] == "lost"]

    def lane(self, rank: int = 0) -> list[Reading]:
        """The readings of one rank, until its lane ends."""
        return [Reading.from_dict(tick["gpus"][rank]) for tick in self.ticks if tick["gpus"][rank] is not None]


@pytest.fixture
def watch(nvml_env: Callable[..., dict[str, str]]) -> Callable[..., Watched]:
    """`watch(script, seconds=2.0, start_s=16.0)`: samples the stub; our clock reads something else than the driver's.

    The first answer comes `late_s` after sampling began.
    """

    def run(
        script: str, *, seconds: float = 2.0, start_s: float = 16.0, late_s: float = 0.0, api: str = "current",
        env: dict[str, str] | None = None,
    ) -> Watched:
        times = (start_s * 1e6, seconds * 10, 77e6, late_s * 1e6)
        command = [sys.executable, "-c", WATCH, *(str(round(time)) for time in times)]
        done = subprocess.run(
            command, cwd=ROOT, env={**nvml_env(script, api=api), **(env or {})}, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return Watched(json.loads(done.stdout))

    return run
