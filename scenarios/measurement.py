"""The NVML side of one run on real GPUs: a sampler process, its periods on the run's time, its readings in the run's recorder.

Owns what becomes of each of the sampler's lines. When to ask and to end is the supervisor's. Must not import torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scenarios.cards import Card, real_card
from scenarios.measured_recorder import MeasuredRecorder
from scenarios.nvml.sampling import RunTime, SamplerProcess, figures_of
from scenarios.recorder import Outgoing


class Measurement:
    """Samples CUDA's `devices` for the ranks in that order, from now on. `on_card` is told once what they are."""

    def __init__(self, recorder: MeasuredRecorder, devices: Sequence[int], *, log: Path, on_card: Callable[[Card], None]) -> None:
        self._recorder = recorder
        self._on_card = on_card
        self._time = RunTime()
        self._sampler = SamplerProcess(devices, log=log)
        self.card: Card | None = None
        self.impossible = ""
        """Why the GPUs cannot be sampled; empty while they can."""

    @property
    def fd(self) -> int:
        return self._sampler.fd

    @property
    def closed(self) -> bool:
        return self._sampler.closed

    def hear(self) -> list[Outgoing]:
        """What the sampler has said since the last call."""
        outgoing = self._all(self._sampler.events())
        if self._sampler.closed and self.card is None:
            self.impossible = self.impossible or "the sampler ended without a word"
        return outgoing

    def begin(self, zero_unix_ns: int) -> list[Outgoing]:
        """The ranks begin to train: what was read since belongs to the run."""
        return [each for event in self._time.begin(zero_unix_ns) for each in self._placed(event)]

    def end(self) -> list[Outgoing]:
        """End the sampler and take its last readings. May be called again."""
        return [] if self._sampler.closed else self._all(self._sampler.end())

    def _all(self, events: Sequence[dict[str, Any]]) -> list[Outgoing]:
        return [each for event in events for placed in self._time.take(event) for each in self._placed(placed)]

    def _placed(self, event: dict[str, Any]) -> list[Outgoing]:
        if event["event"] == "tick":
            return [
                each
                for rank, reading in enumerate(event["gpus"])
                for each in self._recorder.reading(rank, event["end_ns"], figures_of(reading))
            ]  # fmt: skip
        if event["event"] == "lost":
            return self._recorder.lose(event["rank"], event["message"])
        if event["event"] == "start":
            self.card = real_card(event)
            self._on_card(self.card)
        elif self.card is None:
            self.impossible = event["reason"] or "the sampler ended"
        return []
