"""What a run comes to: one object of figures, and one sentence that says what is seen.

Owns the definitions (DESIGN section 4): means are over steady steps, unique_fraction counts distinct samples over all ranks, the
speed-up compares epoch times. Must not import torch or read the record.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS
from scenarios.costs.models import MODELS
from scenarios.serials import SerialSet
from scenarios.telemetry import SAMPLE_PERIOD_NS, Sample
from scenarios.virtual.simulate import step_seconds

WARM_UP_STEPS = 2
"""DDP rebuilds its gradient buckets after the first iteration; the first two steps are left out of every mean."""


@dataclass(kw_only=True)
class Tally:
    """Counts what the ranks report while they train."""

    config: RunConfig
    steps_per_epoch: int = 0
    steps: int = 0
    progress: float = 0.0
    peak_memory_gib: list[float] = field(default_factory=list)
    largest_batch: int = 0
    checksums: dict[int, str | None] = field(default_factory=dict)
    _ends_ns: dict[int, int] = field(default_factory=dict)
    _samples_after: dict[int, int] = field(default_factory=dict)
    _seen: SerialSet = field(default_factory=SerialSet)
    _processed: int = 0
    _epoch_end_ns: int | None = None

    def __post_init__(self) -> None:
        self.peak_memory_gib = [0.0] * self.config.gpus

    def step(self, rank: int, message: dict[str, Any], serials: array[int]) -> None:
        """One rank's step report; `serials` are the samples it trained on."""
        self.peak_memory_gib[rank] = max(self.peak_memory_gib[rank], message["memory_gib"])
        self.steps_per_epoch = message["steps_per_epoch"]
        if not message["trained"]:
            return
        step, end_ns = message["step"], message["end_ns"]
        self.steps = max(self.steps, step)
        self.progress = max(self.progress, message["progress"])
        self.largest_batch = max(self.largest_batch, message["batch"])
        self._ends_ns[step] = max(self._ends_ns.get(step, 0), end_ns)
        self._samples_after[step] = self._samples_after.get(step, 0) + len(serials)
        if message["progress"] <= 1.0 + 1e-6:
            self._seen.add(serials)
            self._processed += len(serials)
        if abs(message["progress"] - 1.0) < 1e-6:
            self._epoch_end_ns = max(self._epoch_end_ns or 0, end_ns)

    @property
    def virtual_s(self) -> float:
        return max(self._ends_ns.values(), default=0) / 1e9

    @property
    def steady_start_ns(self) -> int | None:
        return self._ends_ns.get(WARM_UP_STEPS)

    @property
    def unique_fraction(self) -> float | None:
        return len(self._seen) / self._processed if self._processed else None

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
    """Virtual seconds in which one such GPU alone trains one epoch, correctly: no link matters to it, and it is no straggler."""
    step_s = step_seconds(
        model=config.model, gpu=config.gpu, precision=config.precision, batch=config.batch, world=1, seed=config.seed,
        workers=config.workers, decode_on_gpu=config.preprocess == "gpu",
    )
    return step_s * (MODELS[config.model].epoch_samples // config.batch)


def summarise(tally: Tally, samples: Sequence[Sample], *, outcome: str, source: str, digest: str) -> dict[str, Any]:
    """What the record keeps and `run --json` prints, beside the scenario's name. Fields without a steady part are None.

    The name is left out: every viewer of the run gets this object, also those who are to find out what ran.
    """
    config = tally.config
    steady = outcome == "finished"
    epoch_s = tally.epoch_seconds if steady else None
    rate = tally.samples_per_second if steady else None
    unique = tally.unique_fraction
    return {
        "source": source,
        "outcome": outcome,
        "gpus": [_gpu_means(rank, tally, samples, steady=steady) for rank in range(config.gpus)],
        "samples_per_second": _rounded(rate, 1),
        "unique_samples_per_second": _rounded(rate * unique if rate is not None and unique is not None else None, 1),
        "unique_fraction": _rounded(unique, 4),
        "times_trained": _rounded(1.0 / unique if unique else None, 2),
        "steps_per_epoch": tally.steps_per_epoch,
        "epoch_seconds": _rounded(epoch_s, 3),
        "epoch_measured": tally.epoch_measured,
        "epochs_seen": _rounded(tally.progress, 4),
        "speedup_vs_one_gpu": _rounded(one_gpu_epoch_seconds(config) / epoch_s if epoch_s else None, 2),
        "replica_checksums": [tally.checksums.get(rank) for rank in range(config.gpus)],
        "last_batch_that_fitted": tally.largest_batch or None,
        "peak_memory_gib": _rounded(max(tally.peak_memory_gib), 2),
        "memory_limit_gib": GPUS[config.gpu].memory_gib,
        "steps": tally.steps,
        "virtual_s": _rounded(tally.virtual_s, 3),
        "digest": digest,
    }


def _gpu_means(rank: int, tally: Tally, samples: Sequence[Sample], *, steady: bool) -> dict[str, Any]:
    start_ns, end_ns = tally.steady_start_ns, tally.virtual_s * 1e9
    mine = [sample for sample in samples if steady and sample.rank == rank and start_ns is not None]
    inside = [sample for sample in mine if sample.end_ns - SAMPLE_PERIOD_NS >= (start_ns or 0) and sample.end_ns <= end_ns]
    if not inside:  # a run of a few steps: the periods that reach into the steady part
        inside = [sample for sample in mine if sample.end_ns > (start_ns or 0)]
    return {
        "rank": rank,
        "gpu_util": _mean([sample.gpu_util for sample in inside]),
        "sm_active": _mean([sample.sm_active for sample in inside]),
        "spin_pct": _mean([sample.spin_pct for sample in inside]),
        "memory_gib": _mean([sample.memory_gib for sample in inside]),
        "power_w": _mean([sample.power_w for sample in inside]),
        "peak_memory_gib": _rounded(tally.peak_memory_gib[rank], 2),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 2) if known else None


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def sentence(summary: dict[str, Any]) -> str:
    """What is seen, from the figures alone: it never knows which script ran."""
    gpus = summary["gpus"]
    if summary["outcome"] == "out_of_memory":
        fitted = summary["last_batch_that_fitted"]
        filled = "The GPU filled up" if len(gpus) == 1 else f"All {len(gpus)} GPUs filled up together"
        return (
            f"{filled}: {summary['peak_memory_gib']:.0f} of {summary['memory_limit_gib']:.0f} GiB. "
            + (f"A batch of {fitted} was the last that fitted." if fitted else "Not even the first batch fitted.")
        )
    utils = [gpu["gpu_util"] for gpu in gpus]
    if summary["outcome"] != "finished" or any(util is None for util in utils):
        return f"The run ended early, after {summary['steps']} steps."
    first, rest = utils[0], utils[1:]
    speed = summary["speedup_vs_one_gpu"]
    if not rest:
        return f"One GPU, busy {first:.0f} % of the time."
    mean = sum(rest) / len(rest)
    if first - mean > 30:
        return f"GPU 0 is busy {first:.0f} % of the time; the other {len(rest)} wait for {100 - mean:.0f} % of it."
    if mean - first > 30:
        return f"GPU 0 is busy only {first:.0f} % of the time while the other {len(rest)} show {mean:.0f} %."
    return _even_sentence(summary, sum(utils) / len(utils), speed)


def _even_sentence(summary: dict[str, Any], busy: float, speed: float | None) -> str:
    gpus, checksums = summary["gpus"], summary["replica_checksums"]
    if len(set(checksums)) > 1:
        return f"All {len(gpus)} GPUs are busy {busy:.0f} % of the time, but their weights no longer agree: they train different models."
    if (summary["unique_fraction"] or 1.0) < 0.9:
        return (
            f"All {len(gpus)} GPUs are busy {busy:.0f} % of the time, yet each sample is trained {summary['times_trained']:.0f} times: "
            f"{speed:.1f}x the useful speed of one GPU."
        )
    if busy < 50:
        useful = sum(gpu["sm_active"] for gpu in gpus) / len(gpus)
        return f"All {len(gpus)} GPUs idle alike: busy {busy:.0f} % of the time, with useful work on {useful:.0f} % of their cores."
    waiting = [gpu["spin_pct"] for gpu in gpus if (gpu["spin_pct"] or 0.0) >= 15]
    if waiting:
        mean = sum(waiting) / len(waiting)
        return (
            f"All {len(gpus)} GPUs are busy {busy:.0f} % of the time, but {len(waiting)} of them wait in a kernel for {mean:.0f} % of it: "
            f"{speed:.1f}x the speed of one GPU."
        )
    return f"All {len(gpus)} GPUs are busy {busy:.0f} % of the time, each on its own samples: {speed:.1f}x the speed of one GPU."


def expected(config: RunConfig, outcome: str) -> bool:
    """Whether a run ended as its scenario is meant to."""
    return outcome == SCENARIOS[config.scenario].expected_outcome
