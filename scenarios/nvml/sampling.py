"""A sampler process seen from whoever started it, and its periods put on a run's own time.

Owns starting and ending the process, and the shift from the sampler's clock to the run's. Must not ask NVML itself.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scenarios.rank_pipe import RankPipe
from scenarios.settings import PROJECT_ROOT

Event = dict[str, Any]

END_LIMIT_S = 2.0
FIGURES = ("gpu_util", "sm_active", "memory_gib", "power_w")


class SamplerProcess:
    """Samples CUDA's `devices` from now on. What it prints is read without waiting."""

    def __init__(self, devices: Sequence[int], *, log: Path | None = None) -> None:
        read_fd, write_fd = os.pipe()
        words: Any = subprocess.DEVNULL
        try:
            words = log.open("ab") if log is not None else subprocess.DEVNULL
            self._process = subprocess.Popen(
                [sys.executable, "-m", "scenarios.nvml.sampler", "--devices", ",".join(map(str, devices))],
                cwd=PROJECT_ROOT, stdin=subprocess.DEVNULL, stdout=write_fd, stderr=words,
            )  # fmt: skip
        finally:
            os.close(write_fd)
            if log is not None and words is not subprocess.DEVNULL:
                words.close()
        self._pipe = RankPipe(read_fd)

    @property
    def fd(self) -> int:
        return self._pipe.fd

    @property
    def closed(self) -> bool:
        """Whether it has ended and all it said was read."""
        return self._pipe.closed

    def events(self) -> list[Event]:
        """What it has said since the last call."""
        return [] if self._pipe.closed else self._pipe.read()

    def end(self, limit_s: float = END_LIMIT_S) -> list[Event]:
        """End it; returns what it still had to say. A sampler that hangs inside the driver is killed and left behind."""
        said: list[Event] = []
        if self._process.poll() is None:
            self._process.terminate()
        deadline_s = time.monotonic() + limit_s
        while not self._pipe.closed and time.monotonic() < deadline_s:
            if select.select([self._pipe.fd], [], [], 0.05)[0]:
                said += self._pipe.read()
        try:
            self._process.wait(max(0.05, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
        return said


def figures_of(reading: Event | None) -> Event | None:
    """What a record keeps of one GPU's reading: figures, and how many processes there are, not which."""
    if reading is None:
        return None
    processes = reading.get("processes")
    return {**{name: reading.get(name) for name in FIGURES}, "processes": None if processes is None else len(processes)}


class RunTime:
    """Puts a sampler's periods on the time of a run, which begins when its ranks begin to train."""

    def __init__(self) -> None:
        self._start_unix_ns: int | None = None
        self._zero_unix_ns: int | None = None
        self._early: list[Event] = []

    def begin(self, zero_unix_ns: int) -> list[Event]:
        """The ranks have begun; returns what was read since, so far."""
        self._zero_unix_ns = zero_unix_ns
        early, self._early = self._early, []
        return [placed for event in early for placed in self.take(event)]

    def take(self, event: Event) -> list[Event]:
        """Events of the sampler as they come; ticks with `end_ns` on the run's time, none from before it began."""
        if event["event"] == "start":
            self._start_unix_ns = int(event["unix_ns"])
            return [event]
        if event["event"] != "tick":
            return [event]
        if self._zero_unix_ns is None or self._start_unix_ns is None:
            self._early.append(event)
            return []
        end_ns = event["end_ns"] + self._start_unix_ns - self._zero_unix_ns
        return [{**event, "end_ns": end_ns}] if end_ns > 0 else []
