"""The figures that a diagnosis rests on: means of the steady samples, and the breakdown of the spans.

Owns what is averaged over what. Must not judge any of it, nor know the experiment or its configuration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from scenarios.analysis.breakdown import WARM_UP_STEPS, Part, RankBreakdown, breakdown
from scenarios.analysis.hang import Hang, hang
from scenarios.analysis.pieces import by_rank
from scenarios.telemetry import Sample, Span
from scenarios.wait_windows import WaitWindows, wait_windows

APART = 1e-4
"""Relative distance of two replicas' weights. Healthy replicas compute the same sums and are 0 apart; desynchronised ones 0.1 and more."""


@dataclass(frozen=True, kw_only=True)
class RankFigures:
    """One GPU over the steady sample periods, in percent; None is not measured."""

    rank: int
    busy: float | None
    useful: float | None
    spin: float | None
    power_w: float | None
    memory_gib: float | None


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What samples and spans say, in numbers."""

    gpus: int
    ranks: tuple[RankFigures, ...]
    """Of the steady periods; empty where there are none."""
    periods: int
    """Steady sample periods."""
    gap_share: float
    """What share of all samples holds no utilization, 0 to 1."""
    distinct_pct: float | None
    repeated_pct: float | None
    """Of the last epoch's steps, the percentage whose samples came in the order of the epoch before; None where there was none before."""
    memory_limit_gib: float | None
    power_limit_w: float | None
    first_memory_gib: float | None
    last_memory_gib: tuple[float, ...]
    """Per rank, of the last period in which it was measured."""
    drivers: int | None
    """Processes that train, each on GPUs of its own; None where the record does not say."""
    processes: tuple[int, ...]
    """Per rank, of the last period that has all: how many hold a context on its GPU. Empty where one was not counted."""
    memory_gib: tuple[float, ...]
    """Per rank, of the last period that has all; empty where there is none."""
    rates_differ: int
    """Sample periods in which the ranks' learning rates differ."""
    rates: tuple[float, ...]
    """The different learning rates of the last such period, largest first."""
    apart: float | None
    """The largest distance of any rank's weights from rank 0's."""
    breakdown: tuple[RankBreakdown, ...]
    """Empty where there are no spans of a steady step."""
    has_spans: bool
    broken_off: tuple[int, ...]
    """Ranks whose last step ended in its forward pass."""
    windows: WaitWindows | None
    """Where the others wait for one rank at intervals."""
    hang: Hang | None
    """The standstill at the end; its periods are not steady."""
    hands_over: bool
    """Whether any span hands data from one rank to others."""
    passes: int
    """Backward passes of a step: more than one where gradients are accumulated. 0 without spans."""
    reduced_passes: float
    """How many of them all-reduce their gradients."""

    def mean(self, field: str, ranks: Iterable[int] | None = None) -> float | None:
        """Over the chosen ranks (all by default); None where one of them was not measured."""
        chosen = [getattr(rank, field) for rank in self.ranks if ranks is None or rank.rank in ranks]
        return fmean(chosen) if chosen and None not in chosen else None

    def of(self, rank: int, field: str) -> float | None:
        return next((getattr(found, field) for found in self.ranks if found.rank == rank), None)

    def others(self, rank: int) -> list[int]:
        return [other for other in range(self.gpus) if other != rank]

    def share(self, *parts: Part) -> float:
        """The median rank's share of a step; 0 without spans."""
        return median([rank.share(*parts) for rank in self.breakdown]) if self.breakdown else 0.0

    def share_of(self, rank: int, *parts: Part) -> float:
        return next((found.share(*parts) for found in self.breakdown if found.rank == rank), 0.0)

    def share_of_others(self, rank: int, *parts: Part) -> float:
        """The median of all ranks but one."""
        return median([found.share(*parts) for found in self.breakdown if found.rank != rank] or [0.0])

    @property
    def step_s(self) -> float:
        return median([rank.step_s for rank in self.breakdown]) if self.breakdown else 0.0

    @property
    def near_limit(self) -> float | None:
        """What share of the card's memory the emptiest rank held at last."""
        if not self.memory_limit_gib or not self.last_memory_gib:
            return None
        return min(self.last_memory_gib) / self.memory_limit_gib

    @property
    def memory_growth(self) -> float:
        """How many times the first memory reading the last one is."""
        if not self.first_memory_gib or not self.last_memory_gib:
            return 1.0
        return max(self.last_memory_gib) / self.first_memory_gib


def figures(samples: Sequence[Sample], spans: Iterable[Span], head: Mapping[str, Any]) -> Figures:
    """Everything that is averaged, once."""
    kept = list(spans)
    ranks = sorted({sample.rank for sample in samples} | {span.rank for span in kept})
    ticks: dict[int, list[Sample]] = {}
    for sample in samples:
        ticks.setdefault(sample.end_ns, []).append(sample)
    order = [ticks[end_ns] for end_ns in sorted(ticks)]
    stuck = hang(order)
    moving = order[: -stuck.periods] if stuck else order
    steady = [tick for tick in moving if max(sample.step for sample in tick) > WARM_UP_STEPS]
    differing = [tick for tick in order if len(_rates(tick)) > 1]
    distinct = [sample.distinct_pct for tick in order for sample in tick if sample.distinct_pct is not None]
    repeated = [sample.repeated_pct for sample in order[-1] if sample.repeated_pct is not None] if order else []
    held = {sample.rank: sample.memory_gib for tick in order for sample in tick if sample.memory_gib}
    first_held = next((sample.memory_gib for tick in order for sample in tick if sample.memory_gib), None)
    passes, reduced_passes = _passes(kept)
    return Figures(
        gpus=max([int(head.get("gpus") or 0), *(rank + 1 for rank in ranks)], default=0),
        ranks=tuple(_rank(rank, steady) for rank in ranks) if steady else (),
        periods=len(steady),
        gap_share=fmean([sample.gpu_util is None for sample in samples]) if samples else 0.0,
        distinct_pct=distinct[-1] if distinct else None,
        repeated_pct=repeated[-1] if repeated else None,
        memory_limit_gib=head.get("memory_limit_gib"),
        power_limit_w=head.get("power_limit_w"),
        first_memory_gib=first_held,
        last_memory_gib=tuple(held[rank] for rank in sorted(held)),
        drivers=head.get("processes"),
        processes=_last_of_all(order, "processes"),
        memory_gib=_last_of_all(order, "memory_gib"),
        rates_differ=len(differing),
        rates=tuple(sorted(_rates(differing[-1]), reverse=True)) if differing else (),
        apart=max((sample.weights_apart for sample in samples if sample.weights_apart is not None), default=None),
        breakdown=breakdown(kept),
        has_spans=bool(kept),
        broken_off=tuple(rank for rank, mine in by_rank(kept).items() if _broke_off(mine)),
        windows=wait_windows([sample for tick in steady for sample in tick]),
        hang=stuck,
        hands_over=any(span.kind == "scatter" for span in kept),
        passes=passes,
        reduced_passes=reduced_passes,
    )


def _rank(rank: int, steady: list[list[Sample]]) -> RankFigures:
    mine = [sample for tick in steady for sample in tick if sample.rank == rank]
    return RankFigures(
        rank=rank, busy=_mean([sample.gpu_util for sample in mine]), useful=_mean([sample.sm_active for sample in mine]),
        spin=_mean([sample.spin_pct for sample in mine]), power_w=_mean([sample.power_w for sample in mine]),
        memory_gib=_mean([sample.memory_gib for sample in mine]),
    )


def _passes(spans: list[Span]) -> tuple[int, float]:
    """Backward passes of a step, and how many of them all-reduce: each bucket of gradients is one backward span, and one all-reduce."""
    kinds = Counter(span.kind for span in spans)
    if not kinds["optimizer"] or not kinds["backward"]:
        return 0, 0.0
    passes = round(kinds["forward"] / kinds["optimizer"])
    return passes, passes * min(1.0, kinds["all_reduce"] / kinds["backward"])


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _last_of_all(order: list[list[Sample]], field: str) -> tuple[Any, ...]:
    """By rank, of the last period in which it was measured on all; empty where there is none."""
    known = [[value for sample in tick if (value := getattr(sample, field)) is not None] for tick in order]
    return tuple(next((tick for tick in reversed(known) if tick and len(tick) == len(order[0])), ()))


def _rates(tick: list[Sample]) -> set[float]:
    return {sample.learning_rate for sample in tick if sample.learning_rate is not None}


def _broke_off(spans: list[Span]) -> bool:
    """Whether the last step with kernels of its own ended in the forward pass. A rank that waits in vain has gone backward."""
    last = max((span.step for span in spans if span.stream == "compute"), default=None)
    return last is not None and not any(span.kind in ("backward", "optimizer") for span in spans if span.step == last)
