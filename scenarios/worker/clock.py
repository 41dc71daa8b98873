"""When a device reached a point of its work: CUDA events on a GPU, the clock itself where the host computes.

Owns the mapping of events to nanoseconds of time.monotonic_ns(). A mark costs some microseconds and waits for nothing.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

import torch

Mark = Any


class Clock(Protocol):
    def mark(self) -> Mark:
        """The point that the current stream has been given work up to."""

    def wait(self, mark: Mark) -> None:
        """Until the device has come to `mark`; the processor sleeps meanwhile."""

    def ns(self, mark: Mark) -> int:
        """When that was. Only after `wait` for it or a later one."""


class CudaClock:
    """Elapsed times come in float32 milliseconds: 8 us exact after two minutes."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        torch.cuda.synchronize(device)
        self._first = self._event()
        self._first.record(torch.cuda.current_stream(device))
        self._first.synchronize()
        self._first_ns = time.monotonic_ns()

    def mark(self) -> torch.cuda.Event:
        event = self._event()
        event.record(torch.cuda.current_stream(self._device))  # named: the current GPU may be another
        return event

    def wait(self, mark: torch.cuda.Event) -> None:
        mark.synchronize()

    def ns(self, mark: torch.cuda.Event) -> int:
        since_ms: float = self._first.elapsed_time(mark)
        return self._first_ns + round(since_ms * 1e6)

    @staticmethod
    def _event() -> torch.cuda.Event:
        return torch.cuda.Event(enable_timing=True, blocking=True)


class HostClock:
    """Where the host itself computes."""

    def mark(self) -> int:
        return time.monotonic_ns()

    def wait(self, mark: int) -> None:
        return

    def ns(self, mark: int) -> int:
        return mark


def clock_of(device: torch.device) -> Clock:
    return CudaClock(device) if device.type == "cuda" else HostClock()
