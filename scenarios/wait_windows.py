"""Whether GPUs wait for one of them at intervals, rather than a little in every step.

Owns that distinction, from samples alone; summary and diagnosis use it. Must not judge why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from scenarios.telemetry import Sample

WAITING_PCT = 50.0
"""A sample period belongs to a window where the others spend this much of it waiting in a collective."""

CALM_PCT = 15.0
"""Apart from the windows they wait for less of the time. A whole step that waits is no window but what every step does."""

STEPS_BETWEEN = 3
"""Steps from the end of one window to the begin of the next: a window in every step is how a step goes."""


@dataclass(frozen=True, kw_only=True)
class WaitWindows:
    """At least two stretches in which all ranks but one wait, with several steps between them."""

    rank: int
    """The one that is waited for."""
    count: int
    share_pct: float
    """Of the time, in which the others wait."""
    busy_pct: float | None
    """How busy that one is meanwhile; None where it was not measured."""


def wait_windows(samples: Sequence[Sample]) -> WaitWindows | None:
    """The windows in `samples`, which are those of a steady part; None where there are fewer than two, or spinning was not measured."""
    ticks: dict[int, list[Sample]] = {}
    for sample in samples:
        ticks.setdefault(sample.end_ns, []).append(sample)
    order = [ticks[end_ns] for end_ns in sorted(ticks)]
    spins: dict[int, list[float]] = {}
    for sample in samples:
        if sample.spin_pct is None:
            return None
        spins.setdefault(sample.rank, []).append(sample.spin_pct)
    if len(spins) < 2:
        return None
    rank = min(spins, key=lambda each: fmean(spins[each]))
    waits = [fmean([sample.spin_pct or 0.0 for sample in tick if sample.rank != rank] or [0.0]) for tick in order]
    windows = _stretches([wait >= WAITING_PCT for wait in waits])
    edges = {index for first, last in windows for index in range(first - 1, last + 2)}
    calm = [wait for index, wait in enumerate(waits) if index not in edges]
    steps = [max(sample.step for sample in tick) for tick in order]
    apart = [steps[later[0]] - steps[earlier[1]] for earlier, later in pairwise(windows)]
    if len(windows) < 2 or not calm or fmean(calm) > CALM_PCT or min(apart) < STEPS_BETWEEN:
        return None
    inside = [sample.gpu_util for first, last in windows for tick in order[first : last + 1] for sample in tick if sample.rank == rank]
    known = [value for value in inside if value is not None]
    return WaitWindows(
        rank=rank, count=len(windows), share_pct=fmean(waits), busy_pct=fmean(known) if known else None,
    )


def _stretches(flags: Sequence[bool]) -> list[tuple[int, int]]:
    """(first, last) of each run of True."""
    found: list[tuple[int, int]] = []
    for index, flag in enumerate(flags):
        if flag and found and found[-1][1] == index - 1:
            found[-1] = (found[-1][0], index)
        elif flag:
            found.append((index, index))
    return found
