"""The recorder of a run on real GPUs: utilization, memory and power are NVML's readings, the rest is what the ranks report.

Owns the merging of two streams that arrive in their own time: readings come up to a second late (the driver's buffer), a step is reported
when the one after it is launched, and a rank that hangs reports none. Must not import torch; free of processes and clocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from scenarios.config import RunConfig
from scenarios.recorder import Outgoing, Recorder, StepState, _state_at
from scenarios.sample_order import epoch_of
from scenarios.telemetry import SAMPLE_PERIOD_NS, Sample

PATIENCE_NS = 2_000_000_000
"""How long a period waits for a rank's steps once its reading is there. A rank that waits in a collective ends none."""
KEPT_SKETCHES = 16

Reading = Mapping[str, Any]
"""Figures of one GPU over one period; `processes` is their number."""


class Distances:
    """How far each rank's weights are from rank 0's, from the sketches that come with some steps."""

    def __init__(self, gpus: int) -> None:
        self._sketches: list[dict[int, Sequence[float]]] = [{} for _ in range(gpus)]
        self.latest: list[float] = [0.0] * gpus

    def take(self, rank: int, step: int, sketch: Sequence[float]) -> None:
        self._sketches[rank][step] = sketch
        for other in range(len(self._sketches)) if rank == 0 else (rank,):
            mine, reference = self._sketches[other].get(step), self._sketches[0].get(step)
            if mine is not None and reference is not None and len(mine) == len(reference):
                self.latest[other] = _distance(mine, reference)
        for old in sorted(self._sketches[rank])[:-KEPT_SKETCHES]:
            del self._sketches[rank][old]


class MeasuredRecorder(Recorder):
    """Takes steps as its base does, and readings."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self._readings: list[dict[int, Reading]] = [{} for _ in range(config.gpus)]
        self._newest_ns = [0] * config.gpus
        self._lost: set[int] = set()
        self._over = False
        self.distances = Distances(config.gpus)
        self.lanes: dict[int, str] = {}
        """Rank -> why its lane ended before the run."""

    def reading(self, rank: int, end_ns: int, reading: Reading | None) -> list[Outgoing]:
        """What NVML read of a rank's GPU over the period that ends then, in order of time; None for a GPU that answers no more."""
        if end_ns <= 0:
            return []
        self._newest_ns[rank] = max(self._newest_ns[rank], end_ns)
        if reading is not None:
            self._readings[rank][end_ns] = reading
        return self._closed_periods()

    def lose(self, rank: int, message: str) -> list[Outgoing]:
        """A GPU answers NVML no more: its lane ends, the run does not."""
        self._lost.add(rank)
        self.lanes[rank] = message
        at_ns = self._period_end_ns - SAMPLE_PERIOD_NS
        return [Outgoing(at_ns=at_ns, event="lane", data={"rank": rank, "message": message, "t_ms": at_ns // 1_000_000})]

    def finish(self, *, broke_off: bool) -> list[Outgoing]:
        """Of a run that broke off, all that was read is shown: it may be a hang. Else nothing after the last step."""
        self._over = True
        last_ns = max((stream.watermark_ns for stream in self._ranks), default=0)
        self._last_ns = max([last_ns, *self._newest_ns]) if broke_off else last_ns
        return self._closed_periods()

    def _is_known(self, end_ns: int) -> bool:
        read = [rank in self._lost or newest_ns >= end_ns for rank, newest_ns in enumerate(self._newest_ns)]
        if self._over:
            return any(newest_ns >= end_ns for newest_ns in self._newest_ns) and end_ns <= self._last_ns
        if not all(read) or not any(newest_ns >= end_ns for newest_ns in self._newest_ns):
            return False
        reported = all(stream.watermark_ns >= end_ns for stream in self._ranks)
        return reported or max(self._newest_ns) >= end_ns + PATIENCE_NS

    def _sample(self, rank: int, start_ns: int, end_ns: int) -> Sample:
        stream = self._ranks[rank]
        state: StepState = _state_at(stream.states, end_ns)
        reading = self._readings[rank].pop(end_ns, None)
        while stream.spans and stream.spans[0].end_ns <= end_ns:
            stream.spans.popleft()
        epoch = epoch_of(state.progress)
        read: Reading = reading or {}
        apart = self.distances.latest[rank]
        return Sample(
            rank=rank, end_ns=end_ns, step=state.step, epoch=epoch, epoch_pct=100.0 * (state.progress - epoch),
            gpu_util=read.get("gpu_util"), sm_active=read.get("sm_active"), spin_pct=None,
            memory_gib=read.get("memory_gib"), power_w=read.get("power_w"),
            learning_rate=state.learning_rate if reading else None,
            weights_apart=apart if reading and isfinite(apart) else None,
            distinct_pct=self._seen.distinct_pct, repeated_pct=self._seen.repeated_pct,
            processes=read.get("processes"),
        )  # fmt: skip


def recorder_of(config: RunConfig) -> Recorder:
    """What records a run of `config`."""
    return MeasuredRecorder(config) if config.backend == "cuda" else Recorder(config)


def _distance(mine: Sequence[float], reference: Sequence[float]) -> float:
    difference = sum((a - b) ** 2 for a, b in zip(mine, reference, strict=True)) ** 0.5
    norm = sum(b * b for b in reference) ** 0.5
    return float(difference / norm) if norm else 0.0


