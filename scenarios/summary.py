"""What a run comes to: one object of figures. `seen.py` says it in a sentence.

Owns the definitions (DESIGN section 4): means are over steady steps, unique_fraction counts distinct samples over all ranks, the
speed-up compares epoch times. Must not import torch or read the record.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scenarios.cards import Card, virtual_card
from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.costs.models import MODELS
from scenarios.sample_order import SampleOrder, epoch_of
from scenarios.serials import SerialSet
from scenarios.telemetry import SAMPLE_PERIOD_NS, Sample
from scenarios.virtual.simulate import step_seconds
from scenarios.wait_windows import wait_windows

WARM_UP_STEPS = 2
"""DDP rebuilds its gradient buckets after the first iteration; the first two steps are left out of every mean."""


@dataclass(kw_only=True)
class Tally:
    """Counts what the ranks report while they train."""

    config: RunConfig
    steps: int = 0
    _progress: dict[int, float] = field(default_factory=dict)
    """Epochs that each rank has trained."""
    peak_memory_gib: list[float] = field(default_factory=list)
    largest_batch: int = 0
    checksums: dict[int, str | None] = field(default_factory=dict)
    _ends_ns: dict[int, int] = field(default_factory=dict)
    _per_epoch: dict[int, int] = field(default_factory=dict)
    """Steps of an epoch, as told with each step; of ranks that have fewer batches than others, the most."""
    _exposed_ns: dict[int, int] = field(default_factory=dict)
    """Per rank, in steady steps."""
    _samples_after: dict[int, int] = field(default_factory=dict)
    _seen: SerialSet = field(default_factory=SerialSet)
    _order: SampleOrder = field(default_factory=SampleOrder)
    _processed: int = 0
    _epoch_end_ns: int | None = None

    def __post_init__(self) -> None:
        self.peak_memory_gib = [0.0] * self.config.gpus

    def step(self, rank: int, message: dict[str, Any], serials: array[int]) -> None:
        """One rank's step report; `serials` are the samples it trained on."""
        self.peak_memory_gib[rank] = max(self.peak_memory_gib[rank], message["memory_gib"])
        self._per_epoch[message["step"]] = max(self._per_epoch.get(message["step"], 0), message["steps_per_epoch"])
        if not message["trained"]:
            return
        step, end_ns = message["step"], message["end_ns"]
        self.steps = max(self.steps, step)
        self._progress[rank] = message["progress"]
        self.largest_batch = max(self.largest_batch, message["batch"])
        self._ends_ns[step] = max(self._ends_ns.get(step, 0), end_ns)
        if step > WARM_UP_STEPS:
            self._exposed_ns[rank] = self._exposed_ns.get(rank, 0) + exposed_ns(message["spans"])
        self._samples_after[step] = self._samples_after.get(step, 0) + len(serials)
        self._order.add(rank, epoch_of(message["progress"]), serials)
        if message["progress"] <= 1.0 + 1e-6:
            self._seen.add(serials)
            self._processed += len(serials)
        if abs(message["progress"] - 1.0) < 1e-6:
            self._epoch_end_ns = max(self._epoch_end_ns or 0, end_ns)

    @property
    def progress(self) -> float:
        """Epochs that all ranks have trained: one with fewer batches is through before the others, and the job is not."""
        return min(self._progress.values(), default=0.0)

    @property
    def steps_per_epoch(self) -> int:
        return self._per_epoch[max(self._per_epoch)] if self._per_epoch else 0

    @property
    def virtual_s(self) -> float:
        return max(self._ends_ns.values(), default=0) / 1e9

    @property
    def steady_start_ns(self) -> int | None:
        return self._ends_ns.get(WARM_UP_STEPS)

    @property
    def unique_fraction(self) -> float | None:
        return len(self._seen) / self._processed if self._processed else None

    def exposed_pct(self, rank: int) -> float | None:
        """Percent of a rank's steady steps in which an all-reduce moves gradients and none of the GPU's own kernels runs beside it."""
        if self.step_seconds is None or rank not in self._exposed_ns:
            return None
        return 100.0 * self._exposed_ns[rank] / 1e9 / (self.step_seconds * (self.steps - WARM_UP_STEPS))

    @property
    def order_repeated_pct(self) -> float | None:
        """Of the second epoch's steps, on all ranks, the share whose samples came in the order of the first; None before it is over."""
        return self._order.repeated_pct(1) if self.progress >= 2.0 - 1e-6 else None

    @property
    def step_seconds(self) -> float | None:
        """Mean duration of a steady step; None with fewer than two of them."""
        if self.steps < WARM_UP_STEPS + 2:
            return None
        return (self._ends_ns[self.steps] - self._ends_ns[WARM_UP_STEPS]) / (self.steps - WARM_UP_STEPS) / 1e9

    @property
    def samples_per_second(self) -> float | None:
        if self.step_seconds is None:
            return None
        steady = sum(count for step, count in self._samples_after.items() if step > WARM_UP_STEPS)
        return steady / (self.step_seconds * (self.steps - WARM_UP_STEPS))

    @property
    def epoch_measured(self) -> bool:
        return self._epoch_end_ns is not None

    @property
    def epoch_seconds(self) -> float | None:
        """Of the first epoch; of one at the present rate where the run saw only a part."""
        if self._epoch_end_ns is not None:
            return self._epoch_end_ns / 1e9
        return None if self.step_seconds is None else self.step_seconds * self.steps_per_epoch


def one_gpu_epoch_seconds(config: RunConfig) -> float:
    """Virtual seconds in which one such GPU alone trains one epoch, correctly: no link matters to it, and it is no straggler.

    Knobs that the scenario sets by itself are its mistake, and not the one GPU's.
    """
    own, fields = SCENARIOS[config.scenario].own, RunConfig.model_fields
    workers = fields["workers"].default if "workers" in own else config.workers
    preprocess = fields["preprocess"].default if "preprocess" in own else config.preprocess
    step_s = step_seconds(
        model=config.model, gpu=config.gpu, precision=config.precision, batch=config.batch, world=1, seed=config.seed,
        workers=workers, decode_on_gpu=preprocess == "gpu",
    )
    return step_s * (MODELS[config.model].epoch_samples // config.batch)


def summarise(
    tally: Tally, samples: Sequence[Sample], *, outcome: str, source: str, digest: str, card: Card | None = None, full: Sequence[int] = ()
) -> dict[str, Any]:
    """What the record keeps and `run --json` prints, beside the scenario's name. Fields without a steady part are None.

    `card` is the kind of GPU where the config does not say it. What one real GPU would take is not known: no speed-up then. `full`: the
    ranks that ran out of memory. The GPUs of a run that hung are described as they hung: it is the longest part of it, ten minutes with
    NCCL's default.

    The name is left out: every viewer of the run gets this object, also those who are to find out what ran.
    """
    config = tally.config
    steady = outcome == "finished"
    epoch_s = tally.epoch_seconds if steady else None
    rate = tally.samples_per_second if steady else None
    unique = tally.unique_fraction
    limit_gib = (card or virtual_card(config)).memory_gib
    one_gpu_s = one_gpu_epoch_seconds(config) if epoch_s and source == "virtual" else None
    peaks_gib = [_peak(rank, tally, samples, source) for rank in range(config.gpus)]
    windows = wait_windows(_steady(tally, samples)) if steady else None
    described = _steady(tally, samples) if steady else _hung(tally, samples) if outcome == "timeout" else []
    return {
        "source": source,
        "outcome": outcome,
        "processes": config.processes,
        "gpus": [
            {**_gpu_means(rank, tally, samples, described, steady=steady), "peak_memory_gib": _rounded(peaks_gib[rank], 2)}
            for rank in range(config.gpus)
        ],
        "wait_windows": None if windows is None else {
            "rank": windows.rank, "count": windows.count, "share_pct": _rounded(windows.share_pct, 1),
            "busy_pct": _rounded(windows.busy_pct, 1),
        },
        "samples_per_second": _rounded(rate, 1),
        "unique_samples_per_second": _rounded(rate * unique if rate is not None and unique is not None else None, 1),
        "unique_fraction": _rounded(unique, 4),
        "times_trained": _rounded(1.0 / unique if unique else None, 2),
        "order_repeated_pct": _rounded(tally.order_repeated_pct, 1),
        "steps_per_epoch": tally.steps_per_epoch,
        "epoch_seconds": _rounded(epoch_s, 3),
        "epoch_measured": tally.epoch_measured,
        "epochs_seen": _rounded(tally.progress, 4),
        "speedup_vs_one_gpu": _rounded(one_gpu_s / epoch_s if one_gpu_s and epoch_s else None, 2),
        "replica_checksums": [tally.checksums.get(rank) for rank in range(config.gpus)],
        "out_of_memory_ranks": list(full),
        "last_batch_that_fitted": tally.largest_batch or None,
        "peak_memory_gib": _rounded(max(peaks_gib), 2),
        "memory_limit_gib": limit_gib,
        "steps": tally.steps,
        "virtual_s": _rounded(tally.virtual_s, 3),
        "digest": digest,
    }


def _gpu_means(
    rank: int, tally: Tally, samples: Sequence[Sample], described: Sequence[Sample], *, steady: bool
) -> dict[str, Any]:
    inside = [sample for sample in described if sample.rank == rank]
    return {
        "rank": rank,
        "gpu_util": _mean([sample.gpu_util for sample in inside]),
        "sm_active": _mean([sample.sm_active for sample in inside]),
        "spin_pct": _mean([sample.spin_pct for sample in inside]),
        "exposed_pct": _rounded(tally.exposed_pct(rank) if steady else None, 2),
        "memory_gib": _mean([sample.memory_gib for sample in inside]),
        "power_w": _mean([sample.power_w for sample in inside]),
        "processes": max((sample.processes for sample in samples if sample.rank == rank and sample.processes is not None), default=None),
    }


def exposed_ns(spans: Sequence[Sequence[Any]]) -> int:
    """Of one step's spans, as a rank reports them: the nanoseconds of all-reduces that no kernel of its own hides."""
    work = [(start_ns, end_ns, busy_ns) for _, stream, _, _, start_ns, end_ns, busy_ns, _ in spans if stream == "compute"]
    exposed, at = 0.0, 0
    for _, _, kind, _, start_ns, end_ns, _, _ in spans:
        if kind != "all_reduce":
            continue
        exposed += end_ns - start_ns
        while at < len(work) and work[at][1] <= start_ns:
            at += 1
        for from_ns, until_ns, busy_ns in work[at:]:
            if from_ns >= end_ns:
                break
            exposed -= (min(until_ns, end_ns) - max(from_ns, start_ns)) * busy_ns / (until_ns - from_ns)
    return round(exposed)


def _steady(tally: Tally, samples: Sequence[Sample]) -> list[Sample]:
    """Those of whole periods in the steady part; of a run of a few steps, those that reach into it."""
    start_ns, end_ns = tally.steady_start_ns, tally.virtual_s * 1e9
    if start_ns is None:
        return []
    inside = [sample for sample in samples if sample.end_ns - SAMPLE_PERIOD_NS >= start_ns and sample.end_ns <= end_ns]
    return inside or [sample for sample in samples if sample.end_ns > start_ns]


def _peak(rank: int, tally: Tally, samples: Sequence[Sample], source: str) -> float:
    """On a real GPU, NVML sees what all processes and the driver hold, though only ten times a second."""
    told = tally.peak_memory_gib[rank]
    if source == "virtual":
        return told
    return max([told, *(sample.memory_gib for sample in samples if sample.rank == rank and sample.memory_gib is not None)])


def _hung(tally: Tally, samples: Sequence[Sample]) -> list[Sample]:
    """Those of whole periods after the last step."""
    return [sample for sample in samples if sample.end_ns - SAMPLE_PERIOD_NS >= tally.virtual_s * 1e9]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 2) if known else None


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def expected(config: RunConfig, outcome: str) -> bool:
    """Whether a run ended as its scenario is meant to."""
    return outcome == SCENARIOS[config.scenario].expected_outcome
