"""The two units of telemetry, spans and samples, shared by workers, recorder, feed and diagnosis.

Owns the shapes only. Must not measure, store or draw anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Stream = Literal["host", "compute", "copy", "comm"]
"""`host` is the rank's Python thread; the others are CUDA streams of its GPU."""

Kind = Literal[
    "load", "copy", "decode", "forward", "backward", "optimizer", "all_reduce", "scatter", "spin", "wait", "validate", "checkpoint",
    "replicate",
]
"""`spin` is a collective's kernel waiting for the last rank; `wait` is the host waiting; `scatter` is the host hand-off. `validate` is all
that a pass over held-out samples takes, on the host or the GPU; `checkpoint` is the host writing one. `replicate` is what copying a
network from one GPU to others takes, and summing their gradients on it, on the host or between the GPUs."""

STREAMS: tuple[Stream, ...] = ("host", "compute", "copy", "comm")
KINDS: tuple[Kind, ...] = get_args(Kind)
PAUSES: tuple[Kind, ...] = ("validate", "checkpoint")
"""What interrupts training every so many steps."""

SAMPLE_PERIOD_NS = 200_000_000
"""nvidia-smi's sample period is 1/6 s to 1 s (NVML API reference, nvmlUtilization_t); ours is 1/5 s."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """What one stream of one rank did from `start_ns` to `end_ns` (virtual or device time).

    `busy_ns` <= end_ns - start_ns is the time in which a kernel was resident (launch gaps are not busy).
    `sm_active` in 0..1 is the mean share of the GPU's SMs doing useful work while busy; 0 for host spans and copies.
    """

    rank: int
    stream: Stream
    kind: Kind
    step: int
    start_ns: int
    end_ns: int
    busy_ns: int
    sm_active: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One GPU over one sample period ending at `end_ns`. None means not measured, never 0."""

    rank: int
    end_ns: int
    step: int
    epoch: int
    epoch_pct: float
    gpu_util: float | None
    """Percent of the period during which at least one kernel was resident: what nvidia-smi shows."""
    sm_active: float | None
    """Percent of the SMs doing useful work, averaged over the period."""
    spin_pct: float | None
    """Percent of the period in which the only resident kernel was a collective waiting for another rank."""
    memory_gib: float | None
    power_w: float | None
    learning_rate: float | None
    weights_apart: float | None
    """Relative distance of this rank's parameters from rank 0's. Not part of the digest."""
    distinct_pct: float | None = None
    """Of the samples trained on so far in the present epoch, over all ranks, the percentage that are distinct; the same on every rank."""
    repeated_pct: float | None = None
    """Of the steps so far in the present epoch, over all ranks, the percentage that saw the same samples in the same order as in the epoch
    before; the same on every rank."""
    processes: int | None = None
    """Processes that hold a CUDA context on this GPU."""
