"""What somebody watching a recorded run would answer: from its figures to the finder's answers.

Only what the figures decide is answered. Owns those readings and their thresholds. Must not rank causes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any

from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS
from scenarios.costs.models import MODELS

HIGH_PCT, LOW_PCT, APART_PCT = 75.0, 60.0, 15.0
"""Utilization that people call high and low, and by how much one GPU differs before they see it."""
NEAR_100_PCT = 90.0
LOW_POWER = 0.5
"""Of the card's limit: a GPU that trains draws more, one that waits less (14-36 %)."""
OFTEN = 0.15
"""Of a GPU's readings: what is seen so often is noticed."""
EVEN_GIB = 1.0
CLIMB = 1.3
"""Times the first reading."""
FULL_GAIN, NO_GAIN = 6.0, 1.5
SAW_TOOTH_PCT = 15.0
"""Standard deviation of a GPU's utilization from period to period."""
MUCH_PCT = 12.0
"""Of a step, in collectives: more than what overlaps badly in a healthy run."""

Ticks = Sequence[Mapping[str, Any]]
"""The data of the run's `tick` events."""


def observed(config: RunConfig, summary: Mapping[str, Any], ticks: Ticks) -> dict[str, str]:
    """Question id -> answer id, for the questions that this run answers."""
    found = {
        "busy": _busy(summary, ticks), "power": _power(config, ticks), "memory": _memory(summary, ticks),
        "processes": _processes(summary), "steps": _steps(config, summary), "gain": _gain(summary), "rhythm": _rhythm(summary, ticks),
        "ends": {"finished": "runs", "out_of_memory": "oom", "timeout": "hangs_late"}.get(summary["outcome"]),
        "loss": _loss(summary), "exchange": _exchange(summary),
    }
    return {question: answer for question, answer in found.items() if answer is not None}


def _utils(summary: Mapping[str, Any], ticks: Ticks) -> list[float]:
    """Per GPU: of the steady part or, where there is none, of all sample periods but the first."""
    means = [gpu["gpu_util"] for gpu in summary["gpus"]]
    if all(mean is not None for mean in means):
        return means
    rows = [tick["util"] for tick in ticks[1:]]
    columns = [[value for value in column if value is not None] for column in zip(*rows, strict=True)]
    return [fmean(column) for column in columns] if columns and all(columns) else []


def _busy(summary: Mapping[str, Any], ticks: Ticks) -> str | None:
    utils = _utils(summary, ticks)
    if len(utils) < 2:
        return None
    first, rest = utils[0], utils[1:]
    if first >= LOW_PCT and max(rest) <= 40:
        return "only0"
    if first - max(rest) >= APART_PCT:
        return "gpu0_more"
    if max(utils) - min(utils) >= APART_PCT and sorted(utils)[1] - min(utils) >= APART_PCT:
        return "one_less"
    return "all_high" if fmean(utils) >= HIGH_PCT else "all_low" if fmean(utils) <= LOW_PCT else None


def _power(config: RunConfig, ticks: Ticks) -> str | None:
    """Of the readings near 100 %; a GPU is low where enough of them are. Where no GPU reads so much, of all readings."""
    low_w = LOW_POWER * GPUS[config.gpu].peak_w
    readings = [
        [(util, power) for tick in ticks[1:] if (util := tick["util"][rank]) is not None and (power := tick["power"][rank]) is not None]
        for rank in range(config.gpus)
    ]
    near = [[power for util, power in mine if util >= NEAR_100_PCT] for mine in readings]
    asked = {rank: powers for rank, powers in enumerate(near) if len(powers) >= 3}
    asked = asked or {rank: [power for _, power in mine] for rank, mine in enumerate(readings) if mine}
    if not asked:
        return None
    low = {rank for rank, powers in asked.items() if sum(power < low_w for power in powers) >= OFTEN * len(powers)}
    if len(low) in (0, len(asked)):
        return "all_low" if low else "high"
    return "low_but0" if low == set(asked) - {0} else "some_low"


def _memory(summary: Mapping[str, Any], ticks: Ticks) -> str | None:
    rows = [tick["mem"] for tick in ticks if all(value for value in tick["mem"])]
    if not rows or len(rows[0]) < 2:
        return None
    first, last = rows[0], rows[-1]
    if min(last) >= CLIMB * max(first):
        return "climbing"
    rest = last[1:]
    if max(rest) < EVEN_GIB < last[0]:
        return "only0"
    return "gpu0_more" if last[0] - max(rest) >= EVEN_GIB else "even" if max(last) - min(last) < EVEN_GIB else None


def _processes(summary: Mapping[str, Any]) -> str | None:
    counts = [gpu.get("processes") for gpu in summary["gpus"]]
    if not counts or any(count is None for count in counts):
        return None
    if summary.get("processes") == 1 and len(counts) > 1:
        return "shared"
    return "several0" if counts[0] > 1 and max(counts[1:], default=1) <= 1 else "one_each" if set(counts) == {1} else None


def _steps(config: RunConfig, summary: Mapping[str, Any]) -> str | None:
    """Against the data set once through, at the batch of the run."""
    batch = summary["last_batch_that_fitted"]
    if config.gpus < 2 or batch != config.batch:  # a batch that changes has no number of steps
        return None
    once = MODELS[config.model].epoch_samples / config.batch
    times = summary["steps_per_epoch"] / once
    return "same" if times > 0.9 else "eighth" if abs(times * config.gpus - 1) < 0.2 else None


def _gain(summary: Mapping[str, Any]) -> str | None:
    speed = summary["speedup_vs_one_gpu"]
    return None if speed is None else "full" if speed >= FULL_GAIN else "none" if speed < NO_GAIN else "some"


def _rhythm(summary: Mapping[str, Any], ticks: Ticks) -> str | None:
    if summary["outcome"] != "finished":
        return None
    if summary.get("wait_windows"):
        return "windows"
    columns = [[value for value in column if value is not None] for column in zip(*(tick["util"] for tick in ticks[2:]), strict=True)]
    if not columns or min(map(len, columns)) < 5:
        return None
    swing, level = fmean(map(pstdev, columns)), fmean(map(fmean, columns))
    return "saw_tooth" if swing >= SAW_TOOTH_PCT or swing >= level else "steady"


def _exchange(summary: Mapping[str, Any]) -> str | None:
    """What a profile would show of NCCL's kernels: waiting inside them, and moving gradients beside no other kernel."""
    shares = [None if gpu["spin_pct"] is None else gpu["spin_pct"] + (gpu["exposed_pct"] or 0.0) for gpu in summary["gpus"]]
    if len(shares) < 2 or any(share is None for share in shares):
        return None
    much = [share >= MUCH_PCT for share in shares if share is not None]
    return "much" if all(much) else "much_but_one" if sum(much) == len(much) - 1 else "little" if not any(much) else None


def _loss(summary: Mapping[str, Any]) -> str | None:
    """What the weights and the order of samples would do to a curve."""
    checksums = summary["replica_checksums"]
    if any(checksum is None for checksum in checksums):
        return None
    if len(set(checksums)) > 1:
        return "unsettled"
    return "repeats" if (summary.get("order_repeated_pct") or 0.0) > 50 else "fine"
