"""The columns that an evidence table can have, each read off a run's summary alone.

A lesson names those that decide its question; title and "Matches the question?" stand around them always. Owns headings, meanings and
cells. What was not measured is a dash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Summary = Mapping[str, Any]

MISSING = "–"
UNEVEN = 0.75
"""The emptiest GPU's peak memory over the fullest one's: at or below it, both are said."""
DEFAULT = ("gpu0", "others", "memory", "ended", "agree", "speed")

_ENDED = {
    "finished": "finished", "out_of_memory": "out of memory", "timeout": "timed out", "failed": "failed", "stopped": "stopped",
    "interrupted": "interrupted",
}


@dataclass(frozen=True, kw_only=True)
class Column:
    """One kind of figure."""

    heading: str
    what: str
    """For whoever chooses the columns of a lesson."""
    cell: Callable[[Summary], str]


def _each(summary: Summary, field: str) -> list[float] | None:
    """A figure of every GPU; None where one lacks it."""
    values = [gpu.get(field) for gpu in summary["gpus"]]
    return None if not values or any(value is None for value in values) else [float(value) for value in values]


def _range(values: Sequence[float] | None, unit: str, digits: int = 0) -> str:
    if not values:
        return MISSING
    low, high = (f"{value:.{digits}f}" for value in (min(values), max(values)))
    return (low if low == high else f"{low} to {high}") + unit


def _processes(summary: Summary) -> str:
    return "one for all" if summary.get("processes") == 1 < len(summary["gpus"]) else _by_gpu(summary, "processes", "", 1)


def _by_gpu(summary: Summary, field: str, unit: str, apart: float, digits: int = 0) -> str:
    """A range over all GPUs; the one that differs from every other by `apart` at least is named."""
    values = _each(summary, field)
    if values is None or len(values) < 3:
        return _range(values, unit, digits)
    for rank, value in enumerate(values):
        rest = [other for number, other in enumerate(values) if number != rank]
        if value >= max(rest) + apart or value <= min(rest) - apart:
            return f"GPU {rank}: {value:.{digits}f}{unit}, others {_range(rest, unit, digits)}"
    return _range(values, unit, digits)


def _busy(summary: Summary, gpus: slice) -> str:
    known = [gpu["gpu_util"] for gpu in summary["gpus"][gpus] if gpu["gpu_util"] is not None]
    return _range(known, " %")


def _memory(summary: Summary) -> str:
    peak, limit = summary["peak_memory_gib"], summary["memory_limit_gib"]
    if peak is None:
        return MISSING
    each = _each(summary, "peak_memory_gib")
    if each is not None and len(each) > 2 and each[0] - max(each[1:]) >= 0.5:
        return f"GPU 0: {each[0]:.2f} GiB, others {_range(each[1:], ' GiB', 2)}"
    most = f"{peak:.0f}" if each is None or min(each) > UNEVEN * peak else _range(each, "")
    return f"{most} GiB" if limit is None else f"{most} of {limit:.0f} GiB"


def _ended(summary: Summary) -> str:
    outcome = _ENDED.get(summary["outcome"], str(summary["outcome"]))
    # A hang has no moment of its own: its last step is over long before anybody is told.
    if summary["outcome"] in ("finished", "timeout"):
        return outcome
    return f"{outcome} in the first step" if summary.get("steps") == 0 else f"{outcome} at {summary['virtual_s']:.1f} s"


def weights_agree(summary: Summary) -> bool | None:
    """Whether all ranks end with the same weights; None where that was not measured."""
    checksums = summary["replica_checksums"]
    return None if not checksums or any(checksum is None for checksum in checksums) else len(set(checksums)) == 1


def _number(summary: Summary, field: str, text: str) -> str:
    value = summary.get(field)
    return MISSING if value is None else text.format(value)


def _epoch(summary: Summary) -> str:
    if summary.get("epoch_seconds") is None:
        return MISSING
    return f"{summary['epoch_seconds']:.1f} s" + ("" if summary["epoch_measured"] else " (at this rate)")


def _trained(summary: Summary) -> str:
    fraction = summary.get("unique_fraction")
    if not fraction:
        return MISSING
    return "once" if fraction >= 0.95 else f"{1 / fraction:.1f} times".replace(".0 times", " times")


def _order(summary: Summary) -> str:
    share = summary.get("order_repeated_pct")
    return MISSING if share is None else "the same" if share >= 99.5 else "another one" if share <= 5 else f"{share:.0f} % the same"


def _waits(summary: Summary) -> str:
    windows = summary.get("wait_windows")
    if not windows:
        return "none" if summary["outcome"] == "finished" else MISSING
    return f"{windows['count']}, for GPU {windows['rank']}: {windows['share_pct']:.0f} % of the time"


COLUMNS: dict[str, Column] = {
    "gpu0": Column(heading="GPU 0", what="how busy nvidia-smi calls GPU 0", cell=lambda summary: _busy(summary, slice(0, 1))),
    "others": Column(heading="GPUs 1-7", what="how busy nvidia-smi calls the others", cell=lambda summary: _busy(summary, slice(1, None))),
    "busy": Column(
        heading="Busy", what="how busy nvidia-smi calls all GPUs; one that stands apart is named",
        cell=lambda summary: _by_gpu(summary, "gpu_util", " %", 10),
    ),
    "useful": Column(
        heading="Useful work", what="how much of the GPUs' cores did useful work",
        cell=lambda summary: _by_gpu(summary, "sm_active", " %", 10),
    ),
    "spin": Column(
        heading="Waits in a kernel", what="the share of time that a GPU waits in a kernel and reads busy",
        cell=lambda summary: _by_gpu(summary, "spin_pct", " %", 10),
    ),
    "exposed": Column(
        heading="Only exchanges", what="the share of time that gradients travel and nothing is computed beside it",
        cell=lambda summary: _by_gpu(summary, "exposed_pct", " %", 10),
    ),
    "power": Column(heading="Power", what="watts", cell=lambda summary: _by_gpu(summary, "power_w", " W", 25)),
    "memory": Column(
        heading="Memory", what="the most that was used, of what the card has; a fuller GPU 0 is named, and so is a wide range",
        cell=_memory,
    ),
    "batch": Column(
        heading="Largest batch", what="the largest batch per GPU that fitted",
        cell=lambda summary: _number(summary, "last_batch_that_fitted", "{:,}"),
    ),
    "ended": Column(heading="Ended", what="how the run ended", cell=_ended),
    "agree": Column(
        heading="Weights agree", what="whether all ranks end with the same weights",
        cell=lambda summary: {True: "yes", False: "no", None: MISSING}[weights_agree(summary)],
    ),
    "speed": Column(
        heading="Useful speed", what="against one GPU, samples counted once",
        cell=lambda summary: _number(summary, "speedup_vs_one_gpu", "{:.1f}x one GPU"),
    ),
    "samples": Column(
        heading="Samples a second", what="all GPUs together, repeated ones too",
        cell=lambda summary: _number(summary, "samples_per_second", "{:,.0f}"),
    ),
    "epoch": Column(heading="Epoch", what="seconds of one epoch", cell=_epoch),
    "steps": Column(
        heading="Steps an epoch", what="steps of one epoch", cell=lambda summary: _number(summary, "steps_per_epoch", "{:,}")
    ),
    "unique": Column(heading="Each sample trained", what="how often an epoch trains one sample", cell=_trained),
    "order": Column(heading="Order of epoch 2", what="whether the second epoch brings the samples in the order of the first", cell=_order),
    "windows": Column(heading="Waits at intervals", what="how often all others wait for one GPU, and for how long in all", cell=_waits),
    "processes": Column(
        heading="Processes on a GPU", what="processes that hold memory on each GPU",
        cell=_processes,
    ),
}
