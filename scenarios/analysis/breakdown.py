"""Where a step's time goes: every nanosecond of a rank's GPU given to one part, from spans alone.

A GPU that runs kernels does what they do. Else a resident collective is exposed communication or spinning, then a copy counts, and an
idle GPU is explained by its host. Owns these rules. Must not know the experiment, its configuration or any cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from scenarios.analysis.pieces import Piece, by_rank, pieces, steady_window, step_ends
from scenarios.telemetry import PAUSES, Kind, Span

Part = Literal[
    "decode", "forward", "backward", "optimizer", "all_reduce", "hand_off", "spin", "copy", "replicate", "validate", "checkpoint", "wait",
    "input", "launch",
]

PART_LABELS: dict[Part, str] = {
    "decode": "Decoding",
    "forward": "Forward",
    "backward": "Backward",
    "optimizer": "Optimizer",
    "all_reduce": "All-reduce, exposed",
    "hand_off": "Handing data over",
    "spin": "Spinning in a collective",
    "copy": "Copy to the GPU",
    "replicate": "Replicating the network",
    "validate": "Validating",
    "checkpoint": "Idle: writing a checkpoint",
    "wait": "Idle: another rank is late",
    "input": "Idle: the loader is late",
    "launch": "Idle: launching is slow",
}
"""Parts in the order in which they are drawn: training, communication, pauses from training, idle time."""

PARTS: tuple[Part, ...] = tuple(PART_LABELS)
WORK: tuple[Part, ...] = ("decode", "forward", "backward", "optimizer")
IDLE: tuple[Part, ...] = ("checkpoint", "wait", "input", "launch")

WARM_UP_STEPS = 2
"""DDP rebuilds its gradient buckets after the first iteration; the summary leaves the same steps out."""

_WORK_OF: dict[Kind, Part] = {
    "decode": "decode", "forward": "forward", "backward": "backward", "optimizer": "optimizer", "validate": "validate",
}
_COLLECTIVE_OF: dict[Kind, Part] = {"all_reduce": "all_reduce", "spin": "spin", "scatter": "hand_off", "replicate": "replicate"}
_HOST_OF: dict[Kind, Part] = {
    "load": "input", "wait": "wait", "scatter": "hand_off", "validate": "validate", "checkpoint": "checkpoint",
    "replicate": "replicate", "optimizer": "wait",  # of another GPU that the same host drives
}

Lane = Literal["gpu", "beside"]
"""`gpu` is what the breakdown counts; `beside` is what communication and copies do meanwhile, hidden or not."""


@dataclass(frozen=True, kw_only=True)
class RankBreakdown:
    """One rank's steady steps. The nanoseconds of all parts add up to `window_ns` exactly."""

    rank: int
    steps: int
    window_ns: int
    parts_ns: Mapping[Part, int]
    hidden_all_reduce_ns: int
    """All-reduce under running kernels: it costs no time of its own."""

    @property
    def step_s(self) -> float:
        return self.window_ns / self.steps / 1e9

    @property
    def parts(self) -> dict[Part, float]:
        """Seconds of a step by part."""
        return {part: ns / self.steps / 1e9 for part, ns in self.parts_ns.items()}

    @property
    def hidden_all_reduce_s(self) -> float:
        return self.hidden_all_reduce_ns / self.steps / 1e9

    def share(self, *parts: Part) -> float:
        """What share of a step these parts take together, 0 to 1."""
        return sum(self.parts_ns[part] for part in parts) / self.window_ns


@dataclass(frozen=True, kw_only=True)
class GpuShares:
    """The shares of a GPU's time as nsys and HolisticTraceAnalysis count them; 0 to 1, together 1.

    What runs beside a kernel is hidden: communication and copies count where no kernel computes.
    """

    rank: int
    compute: float
    communication: float
    copies: float
    idle: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """A stretch of one rank's timeline that is drawn alike, in seconds from the start of the picture."""

    rank: int
    lane: Lane
    part: Part
    start_s: float
    end_s: float
    filled: float
    """How much of the stretch kernels fill, 0 to 1; the rest are launch gaps."""


def breakdown(spans: Iterable[Span], *, warm_up_steps: int = WARM_UP_STEPS) -> tuple[RankBreakdown, ...]:
    """Per rank the seconds of a steady step by part; a rank without a steady step is left out."""
    found = []
    for rank, mine in by_rank(spans).items():
        window = steady_window(mine, warm_up_steps=warm_up_steps)
        if window is None:
            continue
        parts: dict[Part, int] = dict.fromkeys(PARTS, 0)
        hidden_ns = 0
        for piece in pieces(mine, window.start_ns, window.end_ns):
            for part, ns in _attributed(piece):
                parts[part] += ns
            if piece.comm is not None and piece.comm.kind == "all_reduce":
                hidden_ns += piece.busy_ns
        found.append(
            RankBreakdown(
                rank=rank, steps=window.steps, window_ns=window.end_ns - window.start_ns, parts_ns=parts,
                hidden_all_reduce_ns=hidden_ns,
            )
        )
    return tuple(found)


def gpu_shares(spans: Iterable[Span], *, warm_up_steps: int = WARM_UP_STEPS) -> tuple[GpuShares, ...]:
    """Per rank, over its steady steps; with `warm_up_steps=0` from its first kernel or copy to its last, as profilers do."""
    found = []
    for rank, mine in by_rank(spans).items():
        window = steady_window(mine, warm_up_steps=warm_up_steps) if warm_up_steps else None
        device = [span for span in mine if span.stream != "host"]
        if not device or (warm_up_steps and window is None):
            continue
        start_ns = window.start_ns if window else min(span.start_ns for span in device)
        end_ns = window.end_ns if window else max(span.end_ns for span in device)
        compute = communication = copies = 0
        for piece in pieces(device, start_ns, end_ns):
            rest = piece.end_ns - piece.start_ns - piece.busy_ns
            compute += piece.busy_ns
            if piece.comm is not None:
                communication += rest
            elif piece.copy is not None:
                copies += rest
        total = end_ns - start_ns
        found.append(
            GpuShares(
                rank=rank, compute=compute / total, communication=communication / total, copies=copies / total,
                idle=(total - compute - communication - copies) / total,
            )
        )
    return tuple(found)


def timeline(spans: Iterable[Span], *, ranks: Collection[int] | None = None, steps: int = 2) -> tuple[Segment, ...]:
    """The last `steps` whole steps of the chosen ranks (all by default) on one clock, for drawing.

    Where training pauses every so many steps, the last ones that hold such a pause.
    """
    chosen = {rank: mine for rank, mine in by_rank(spans).items() if ranks is None or rank in ranks}
    ends = {rank: list(step_ends(mine).values()) for rank, mine in chosen.items()}
    whole = min((len(times) for times in ends.values()), default=0)
    if whole < 2:
        return ()
    pauses = [span.step for mine in chosen.values() for span in mine if span.kind in PAUSES and span.step < whole]
    whole = max([step for step in pauses if step > 0], default=whole - 1) + 1
    # One window for all: from when the first of them began these steps to when the last ended.
    shown = min(steps, whole - 1)
    start_ns = min(times[whole - 1 - shown] for times in ends.values())
    end_ns = max(times[whole - 1] for times in ends.values())
    segments: list[Segment] = []
    for rank, mine in chosen.items():
        cut = list(pieces(mine, start_ns, end_ns))
        segments += _merged(_gpu_lane(rank, piece, start_ns) for piece in cut)
        segments += _merged(_beside_lane(rank, piece, start_ns) for piece in cut)
    return tuple(segments)


def _attributed(piece: Piece) -> Iterator[tuple[Part, int]]:
    """What a piece's nanoseconds are for."""
    length_ns = piece.end_ns - piece.start_ns
    busy_ns = piece.busy_ns
    if piece.compute is not None and busy_ns:
        yield _WORK_OF[piece.compute.kind], busy_ns
    if length_ns > busy_ns:
        yield _without_kernel(piece), length_ns - busy_ns


def _without_kernel(piece: Piece) -> Part:
    """What the GPU is for while none of its own kernels runs."""
    if piece.comm is not None:
        return _COLLECTIVE_OF[piece.comm.kind]
    if piece.compute is not None:  # between two kernels of one phase
        return "launch" if piece.compute.kind != "validate" else "validate"
    if piece.copy is not None:
        return "copy"
    # A host that neither loads nor waits is launching. It never waits for its own GPU here, for that has nothing to do.
    return "launch" if piece.host is None else _HOST_OF[piece.host.kind]


def _gpu_lane(rank: int, piece: Piece, zero_ns: int) -> Segment:
    length_ns = piece.end_ns - piece.start_ns
    works = piece.compute is not None and piece.busy_ns > 0
    part = _WORK_OF[piece.compute.kind] if piece.compute is not None and works else _without_kernel(piece)
    return Segment(
        rank=rank, lane="gpu", part=part, start_s=(piece.start_ns - zero_ns) / 1e9, end_s=(piece.end_ns - zero_ns) / 1e9,
        filled=round(piece.busy_ns / length_ns, 2) if works else 1.0,
    )


def _beside_lane(rank: int, piece: Piece, zero_ns: int) -> Segment | None:
    if piece.comm is None and piece.copy is None:
        return None
    part: Part = "copy" if piece.comm is None else _COLLECTIVE_OF[piece.comm.kind]
    return Segment(
        rank=rank, lane="beside", part=part, start_s=(piece.start_ns - zero_ns) / 1e9, end_s=(piece.end_ns - zero_ns) / 1e9, filled=1.0
    )


def _merged(segments: Iterable[Segment | None]) -> list[Segment]:
    """Neighbours that are drawn alike become one."""
    merged: list[Segment] = []
    for segment in segments:
        if segment is None:
            continue
        last = merged[-1] if merged else None
        if last is not None and last.part == segment.part and last.end_s == segment.start_s and abs(last.filled - segment.filled) < 0.05:
            merged[-1] = Segment(
                rank=last.rank, lane=last.lane, part=last.part, start_s=last.start_s, end_s=segment.end_s, filled=last.filled
            )
        else:
            merged.append(segment)
    return merged
