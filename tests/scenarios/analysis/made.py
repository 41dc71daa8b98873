"""Spans and samples made by hand."""

from __future__ import annotations

from typing import Any

from scenarios.telemetry import Kind, Sample, Span, Stream

MS = 1_000_000


def span(rank: int, stream: Stream, kind: Kind, step: int, start_ms: float, end_ms: float, *, busy: float = 1.0) -> Span:
    """A span in milliseconds; `busy` is the share of it in which kernels run."""
    start_ns, end_ns = round(start_ms * MS), round(end_ms * MS)
    return Span(
        rank=rank, stream=stream, kind=kind, step=step, start_ns=start_ns, end_ns=end_ns,
        busy_ns=round((end_ns - start_ns) * busy), sm_active=0.9,
    )


def sample(rank: int, period: int, **fields: Any) -> Sample:
    """A healthy GPU in one sample period, but for `fields`."""
    known: dict[str, Any] = {
        "step": 2 + period, "epoch": 0, "epoch_pct": float(period), "gpu_util": 99.0, "sm_active": 88.0, "spin_pct": 0.5,
        "memory_gib": 24.0, "power_w": 380.0, "learning_rate": 0.1, "weights_apart": 0.0, "distinct_pct": 100.0, "repeated_pct": 0.0,
    }
    return Sample(rank=rank, end_ns=(period + 1) * 200 * MS, **(known | fields))
