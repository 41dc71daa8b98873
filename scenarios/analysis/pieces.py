"""A rank's time cut into pieces in which nothing changes, each with what every stream did in it.

Owns the cutting and the window of steady steps; what a piece means is `breakdown.py`'s. Integer nanoseconds throughout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from scenarios.telemetry import STREAMS, Span, Stream


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """`steps` whole steps of one rank, from the end of the step before them to the end of the last."""

    start_ns: int
    end_ns: int
    steps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """From `start_ns` to `end_ns` each stream does one thing, or nothing."""

    start_ns: int
    end_ns: int
    host: Span | None
    compute: Span | None
    copy: Span | None
    comm: Span | None

    @property
    def busy_ns(self) -> int:
        """How much of the piece the compute stream's kernels fill: between kernels that are launched too slowly, they leave gaps."""
        span = self.compute
        if span is None:
            return 0
        length_ns = self.end_ns - self.start_ns
        return min(length_ns, round(length_ns * span.busy_ns / (span.end_ns - span.start_ns)))


def by_rank(spans: Iterable[Span]) -> dict[int, list[Span]]:
    """The spans of each rank, ranks in order. Spans without length are left out."""
    found: dict[int, list[Span]] = {}
    for span in spans:
        if span.end_ns > span.start_ns:
            found.setdefault(span.rank, []).append(span)
    return dict(sorted(found.items()))


def step_ends(spans: Iterable[Span]) -> dict[int, int]:
    """Step -> when one rank's optimizer ended. A step that memory or a fault broke off has none."""
    ends: dict[int, int] = {}
    for span in spans:
        if span.kind == "optimizer":
            ends[span.step] = max(ends.get(span.step, 0), span.end_ns)
    return dict(sorted(ends.items()))


def steady_window(spans: Iterable[Span], *, warm_up_steps: int) -> Window | None:
    """The whole steps of one rank after the first `warm_up_steps` (at least one); None where there are none."""
    ends = list(step_ends(spans).values())
    first = max(1, warm_up_steps)
    if len(ends) <= first:
        return None
    return Window(start_ns=ends[first - 1], end_ns=ends[-1], steps=len(ends) - first)


def pieces(spans: Iterable[Span], start_ns: int, end_ns: int) -> Iterator[Piece]:
    """One rank's pieces from `start_ns` to `end_ns`, without a gap. Spans of one stream do not overlap."""
    inside = [span for span in spans if span.end_ns > start_ns and span.start_ns < end_ns]
    streams = {stream: _Cursor([span for span in inside if span.stream == stream]) for stream in STREAMS}
    edges = {start_ns, end_ns}
    for span in inside:
        edges.update(edge for edge in (span.start_ns, span.end_ns) if start_ns < edge < end_ns)
    for left, right in pairwise(sorted(edges)):
        at: dict[Stream, Span | None] = {stream: cursor.at(left) for stream, cursor in streams.items()}
        yield Piece(start_ns=left, end_ns=right, host=at["host"], compute=at["compute"], copy=at["copy"], comm=at["comm"])


class _Cursor:
    """The span of one stream at a time that only grows."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = sorted(spans, key=lambda span: span.start_ns)
        self._index = 0

    def at(self, time_ns: int) -> Span | None:
        while self._index < len(self._spans) and self._spans[self._index].end_ns <= time_ns:
            self._index += 1
        if self._index < len(self._spans) and self._spans[self._index].start_ns <= time_ns:
            return self._spans[self._index]
        return None
