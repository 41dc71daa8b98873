"""Whether a run stands still at its end: some ranks wait in a collective's kernel for others that do not come.

Owns that distinction, from samples alone. Must not judge why they do not come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from scenarios.telemetry import SAMPLE_PERIOD_NS, Sample

LEAST_PERIODS = 10
"""Two seconds: a rank that validates or writes a checkpoint keeps the others waiting too, and comes back."""

SMALL_KERNEL_PCT = 25.0
"""Useful work of a GPU on which nothing but a collective's kernel is resident, where spinning itself was not measured."""


@dataclass(frozen=True, kw_only=True)
class Hang:
    """The sample periods at the end of a run in which no step ended and every GPU either waits or does nothing."""

    periods: int
    seconds: float
    waiting: tuple[int, ...]
    """Ranks whose only kernel is a collective's."""
    absent: tuple[int, ...]
    """Ranks without a kernel."""
    power_w: float | None
    """Of those that wait."""
    spin_measured: bool


def hang(ticks: Sequence[Sequence[Sample]]) -> Hang | None:
    """The hang at the end of `ticks`, the samples of all ranks by period; None where there is none."""
    last: list[Sequence[Sample]] = []
    for tick in reversed(ticks):
        if last and (_roles(tick) != _roles(last[0]) or _step(tick) != _step(last[0])):
            break
        if _roles(tick) is None:
            break
        last.append(tick)
    roles = _roles(last[0]) if len(last) >= LEAST_PERIODS else None
    if roles is None:
        return None
    powers = [sample.power_w for tick in last for sample in tick if sample.rank in roles[0] and sample.power_w is not None]
    return Hang(
        periods=len(last), seconds=(last[0][0].end_ns - last[-1][0].end_ns + SAMPLE_PERIOD_NS) / 1e9, waiting=roles[0], absent=roles[1],
        power_w=fmean(powers) if powers else None,
        spin_measured=all(sample.spin_pct is not None for tick in last for sample in tick),
    )


def _roles(tick: Sequence[Sample]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """(waiting, absent), where these are all; None else."""
    waiting = tuple(sample.rank for sample in tick if _waits(sample))
    absent = tuple(sample.rank for sample in tick if sample.gpu_util is not None and sample.gpu_util <= 5)
    return (waiting, absent) if waiting and absent and len(waiting) + len(absent) == len(tick) else None


def _waits(sample: Sample) -> bool:
    if sample.spin_pct is not None:
        return sample.spin_pct >= 90
    return (sample.gpu_util or 0.0) >= 95 and sample.sm_active is not None and sample.sm_active <= SMALL_KERNEL_PCT


def _step(tick: Sequence[Sample]) -> int:
    return max(sample.step for sample in tick)
