"""Launch gaps of a real GPU come from NVML: events do not see them."""

from __future__ import annotations

import pytest

from scenarios.analysis.breakdown import breakdown
from scenarios.analysis.diagnosis import diagnose
from scenarios.analysis.measured_spans import filled
from scenarios.telemetry import Kind, Sample, Span, Stream

MS = 1_000_000


def span(kind: Kind, step: int, start: int, end: int, stream: Stream = "compute") -> Span:
    return Span(
        rank=0, stream=stream, kind=kind, step=step, start_ns=start * MS, end_ns=end * MS, busy_ns=(end - start) * MS, sm_active=0.0
    )


def steps(count: int = 20) -> list[Span]:
    """Steps of 100 ms without a pause, 10 of them in an all-reduce that nothing hides."""
    spans = []
    for step in range(1, count + 1):
        at = 100 * (step - 1)
        spans += [
            span("forward", step, at, at + 30), span("backward", step, at + 30, at + 80),
            span("all_reduce", step, at + 80, at + 90, "comm"), span("optimizer", step, at + 90, at + 100),
        ]  # fmt: skip
    return spans


def samples(util: float | None, count: int = 10) -> list[Sample]:
    return [
        Sample(
            rank=0, end_ns=200 * MS * number, step=2 * number, epoch=0, epoch_pct=1.0, gpu_util=util, sm_active=12.0, spin_pct=None,
            memory_gib=4.0, power_w=150.0, learning_rate=0.1, weights_apart=0.0, distinct_pct=100.0,
        )
        for number in range(1, count + 1)
    ]  # fmt: skip


def test_phases_are_as_full_as_the_gpu_was_busy() -> None:
    rank = breakdown(filled(steps(), samples(37.0)))[0]
    assert rank.share("all_reduce") == pytest.approx(0.1)
    assert rank.share("forward", "backward", "optimizer") == pytest.approx(0.27)
    assert rank.share("launch") == pytest.approx(0.63)
    assert sum(rank.parts_ns.values()) == rank.window_ns


def test_a_busy_gpu_and_one_that_was_not_read_stay_as_the_events_say() -> None:
    assert filled(steps(), samples(99.0)) == steps()
    assert filled(steps(), samples(None)) == steps()


def test_small_kernels_on_a_real_gpu_are_found() -> None:
    head = {"gpus": 1, "source": "nvml", "memory_limit_gib": 140.4, "power_limit_w": 700.0}
    found = diagnose(samples(37.0), filled(steps(), samples(37.0)), head)
    assert found.findings[0].cause == "launch_bound", found.as_dict
