"""The spans of a run on real GPUs, with the launch gaps that only NVML sees.

CUDA events say when a phase began and ended, not whether kernels fill it. NVML says how busy the GPU was in all. What is busy beside the
collectives is spread evenly over the phases: an estimate, the same share for each phase of a rank. Owns that estimate.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from scenarios.analysis.breakdown import WARM_UP_STEPS, RankBreakdown, breakdown
from scenarios.analysis.pieces import by_rank
from scenarios.record import samples_of, source_of, spans_of
from scenarios.telemetry import SAMPLE_PERIOD_NS, Sample, Span

FULL = 0.97
"""Phases that are busier than this are taken to be full: readings are not exacter."""
LEAST = 0.02


def spans_of_run(run_dir: Path) -> list[Span]:
    """The spans of a record as the analysis takes them."""
    spans = list(spans_of(run_dir))
    return filled(spans, samples_of(run_dir)) if source_of(run_dir) == "nvml" else spans


def breakdown_of_run(run_dir: Path) -> tuple[RankBreakdown, ...]:
    """`breakdown` of a record."""
    return breakdown(spans_of_run(run_dir))


def filled(spans: Sequence[Span], samples: Sequence[Sample]) -> list[Span]:
    """`spans` with as much of each phase busy as the readings of its rank's GPU say."""
    shares = {rank: _share(mine, [sample for sample in samples if sample.rank == rank]) for rank, mine in by_rank(spans).items()}
    return [
        dataclasses.replace(span, busy_ns=round((span.end_ns - span.start_ns) * shares[span.rank]))
        if span.stream == "compute" and shares.get(span.rank, 1.0) < FULL
        else span
        for span in spans
    ]


def _share(spans: Sequence[Span], samples: Sequence[Sample]) -> float:
    """How much of its phases a rank's kernels fill, over the steady periods; 1 where that is not known."""
    busy = phases = 0.0
    for sample in samples:
        if sample.gpu_util is None or sample.step <= WARM_UP_STEPS:
            continue
        start_ns = sample.end_ns - SAMPLE_PERIOD_NS
        inside = [(span.stream, min(span.end_ns, sample.end_ns) - max(span.start_ns, start_ns)) for span in spans]
        compute = sum(length for stream, length in inside if stream == "compute" and length > 0)
        comm = sum(length for stream, length in inside if stream == "comm" and length > 0)
        if compute:
            busy += max(0.0, sample.gpu_util / 100 * SAMPLE_PERIOD_NS - comm)
            phases += compute
    return min(1.0, max(LEAST, busy / phases)) if phases else 1.0
