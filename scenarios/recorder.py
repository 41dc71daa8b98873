"""From the ranks' step reports to one stream of samples and events.

Owns the order: a sample period is closed when every rank's compute stream has passed its end, and events come out in virtual time.
Free of wall clocks, files and processes; the supervisor gives it messages and releases what comes out. Must not import torch.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from scenarios.config import RunConfig
from scenarios.costs import pricing
from scenarios.record import tick_of
from scenarios.sample_order import SampleOrder, epoch_of
from scenarios.serials import SerialSet
from scenarios.telemetry import PAUSES, SAMPLE_PERIOD_NS, Sample, Span

STRIP_EVERY_NS = 4_000_000_000
STRIP_STEPS = 2
FIRST_STRIP_NS = 800_000_000
SHORTEST_PART_NS = 1_000_000
"""The last, unfinished period of a run that broke off is taken to be at least this long: ticks tell milliseconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outgoing:
    """An event that may be shown once virtual time `at_ns` has come."""

    at_ns: int
    event: str
    data: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepState:
    """What holds on one rank from the end of a step on."""

    end_ns: int
    step: int
    progress: float
    learning_rate: float | None
    memory_gib: float
    apart: float
    processes: int = 1


@dataclass(kw_only=True)
class _RankStream:
    """What is known of one rank and not yet sampled."""

    spans: deque[Span] = field(default_factory=deque)
    states: list[StepState] = field(default_factory=list)
    trained: deque[tuple[StepState, Sequence[int]]] = field(default_factory=deque)
    """Steps whose samples are not counted yet."""
    watermark_ns: int = 0
    ended: bool = False
    left: bool = False
    """It is through with its script and waits for the others: its GPU has nothing to do, and keeps what it holds."""


class _SamplesOfEpoch:
    """How many of the samples of the present epoch, over all ranks, are distinct, and whether they come in the order of the one before."""

    def __init__(self) -> None:
        self._epoch = 0
        self._order = SampleOrder()
        self._seen = SerialSet()
        self._processed = 0

    def add(self, rank: int, epoch: int, serials: Sequence[int]) -> None:
        self._order.add(rank, epoch, serials)
        if epoch > self._epoch:
            self._epoch, self._seen, self._processed = epoch, SerialSet(), 0
        if epoch == self._epoch:
            self._seen.add(serials)
            self._processed += len(serials)

    @property
    def distinct_pct(self) -> float | None:
        return 100.0 * len(self._seen) / self._processed if self._processed else None

    @property
    def repeated_pct(self) -> float | None:
        return self._order.repeated_pct(self._epoch)


class Recorder:
    """Takes messages of `config.gpus` ranks in any interleaving; the result does not depend on it."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._ranks = [_RankStream() for _ in range(config.gpus)]
        self._period_end_ns = SAMPLE_PERIOD_NS
        self._next_strip_ns = FIRST_STRIP_NS
        self._strip_spans: list[Span] = []
        self._shown_steps = 0
        """Steps that were over at the last strip."""
        self._digest = hashlib.sha256()
        self._seen = _SamplesOfEpoch()
        self.samples: list[Sample] = []

    @property
    def digest(self) -> str:
        """sha256 over all samples so far: integers and modelled figures only, no loss, weights or wall clock."""
        return self._digest.hexdigest()

    def step(self, rank: int, state: StepState, spans: list[Span], serials: Sequence[int] = ()) -> list[Outgoing]:
        """One rank finished (or broke off) a step; `serials` are the samples it trained on."""
        stream = self._ranks[rank]
        stream.spans.extend(span for span in spans if span.stream in ("compute", "comm"))
        stream.states.append(state)
        if serials:
            stream.trained.append((state, serials))
        stream.watermark_ns = max(stream.watermark_ns, state.end_ns)
        self._strip_spans.extend(spans)
        return self._closed_periods()

    def left(self, rank: int) -> None:
        """A rank has ended its script. Others may go on without it."""
        self._ranks[rank].left = True

    def finish(self, *, broke_off: bool) -> list[Outgoing]:
        """No rank will report again: close what is left.

        Of a run that broke off, a last and shorter period is shown too, since it holds what ended it.
        """
        outgoing = self._closed_periods()
        last_ns = max((stream.watermark_ns for stream in self._ranks), default=0)
        for stream in self._ranks:
            stream.ended = True
        outgoing += self._closed_periods()
        start_ns = self._period_end_ns - SAMPLE_PERIOD_NS
        if broke_off and last_ns > start_ns:
            outgoing.append(self._tick(start_ns, max(last_ns, start_ns + SHORTEST_PART_NS)))
        return outgoing

    def _closed_periods(self) -> list[Outgoing]:
        outgoing: list[Outgoing] = []
        while True:
            if not self._is_known(self._period_end_ns):
                return outgoing
            outgoing.append(self._tick(self._period_end_ns - SAMPLE_PERIOD_NS, self._period_end_ns))
            if self._period_end_ns >= self._next_strip_ns:
                outgoing += self._strip()
            self._period_end_ns += SAMPLE_PERIOD_NS

    def _is_known(self, end_ns: int) -> bool:
        """Whether all that will be said of the period that ends then has been said."""
        live = [stream.watermark_ns for stream in self._ranks if not (stream.ended or stream.left)]
        reached_ns = min(live) if live else max((stream.watermark_ns for stream in self._ranks), default=0)
        return reached_ns >= end_ns

    def _tick(self, start_ns: int, end_ns: int) -> Outgoing:
        self._count_samples(end_ns)
        samples = [self._sample(rank, start_ns, end_ns) for rank in range(len(self._ranks))]
        tick = tick_of(samples)
        self.samples += samples
        counted = {name: value for name, value in tick.items() if name != "apart"}
        self._digest.update(json.dumps(counted, sort_keys=True).encode())
        return Outgoing(at_ns=end_ns, event="tick", data=tick)

    def _count_samples(self, end_ns: int) -> None:
        """Count the samples of the steps that ended by `end_ns`. Which epoch is the present one must not depend on the order of ranks."""
        ended: list[tuple[int, int, Sequence[int]]] = []
        for rank, stream in enumerate(self._ranks):
            while stream.trained and stream.trained[0][0].end_ns <= end_ns:
                state, serials = stream.trained.popleft()
                ended.append((epoch_of(state.progress), rank, serials))
        for epoch, rank, serials in sorted(ended, key=lambda entry: entry[0]):
            self._seen.add(rank, epoch, serials)

    def _sample(self, rank: int, start_ns: int, end_ns: int) -> Sample:
        stream = self._ranks[rank]
        length_ns = end_ns - start_ns
        state = _state_at(stream.states, end_ns)
        covered = stream.watermark_ns > start_ns or stream.left
        shares = _shares(stream.spans, start_ns, end_ns)
        while stream.spans and stream.spans[0].end_ns <= end_ns:
            stream.spans.popleft()
        busy, useful, spinning = (share / length_ns for share in shares)
        epoch = epoch_of(state.progress)
        return Sample(
            rank=rank, end_ns=end_ns, step=state.step, epoch=epoch, epoch_pct=100.0 * (state.progress - epoch),
            gpu_util=100.0 * busy if covered else None,
            sm_active=100.0 * useful if covered else None,
            spin_pct=100.0 * spinning if covered else None,
            memory_gib=state.memory_gib if covered else None,
            power_w=pricing.power_w(self._config.gpu, busy=busy, sm_active=useful, spinning=spinning) if covered else None,
            learning_rate=state.learning_rate if covered else None,
            weights_apart=state.apart if covered else None,
            distinct_pct=self._seen.distinct_pct,
            repeated_pct=self._seen.repeated_pct,
            processes=state.processes if covered else None,
        )

    def _strip(self) -> list[Outgoing]:
        """The last whole steps at kernel resolution, or those about the last pause from training, for slow motion."""
        whole = min((_state_at(stream.states, self._period_end_ns).step for stream in self._ranks), default=0)
        pauses = [span.step for span in self._strip_spans if span.kind in PAUSES and self._shown_steps <= span.step < whole]
        last = max(pauses, default=whole - 1)  # what happens every so many steps shall be seen once it does
        self._shown_steps = whole
        wanted = range(max(0, last - STRIP_STEPS + 1), last + 1)
        steps = [span for span in self._strip_spans if span.step in wanted]
        # Loads run ahead: what the devices did for other steps inside this window belongs to the picture too.
        before = [span.end_ns for span in self._strip_spans if span.step == wanted.start - 1 and span.stream != "host"]
        kept, self._strip_spans = self._strip_spans, [span for span in self._strip_spans if span.step >= whole - 1 - STRIP_STEPS]
        self._next_strip_ns += STRIP_EVERY_NS
        if not steps:
            return []
        start_ns = max(before) if before else min(span.start_ns for span in steps)
        end_ns = max(span.end_ns for span in steps)
        spans = [span for span in kept if span.end_ns > start_ns and span.start_ns < end_ns]
        spans.sort(key=lambda span: (span.rank, span.stream, span.start_ns))
        data = {"t0_us": start_ns // 1000, "t1_us": end_ns // 1000, "spans": _merged(spans)}
        return [Outgoing(at_ns=self._period_end_ns, event="strip", data=data)]


def _state_at(states: list[StepState], at_ns: int) -> StepState:
    """The latest step that ended by `at_ns`; before the first one its figures hold already, with no progress."""
    index = bisect_right(states, at_ns, key=lambda state: state.end_ns)
    if index:
        return states[index - 1]
    if states:
        first = states[0]
        return StepState(
            end_ns=0, step=0, progress=0.0, learning_rate=first.learning_rate, memory_gib=first.memory_gib, apart=0.0,
            processes=first.processes,
        )
    return StepState(end_ns=0, step=0, progress=0.0, learning_rate=None, memory_gib=0.0, apart=0.0)


def _shares(spans: Iterable[Span], start_ns: int, end_ns: int) -> tuple[float, float, float]:
    """Nanoseconds of the period in which any kernel is resident; SM-weighted; and in which only a spinning collective is.

    Compute and communication overlap; within each stream spans are in order and do not. A span with launch gaps counts by its density.
    """
    inside = [span for span in spans if span.start_ns < end_ns and span.end_ns > start_ns]
    if not inside:
        return 0.0, 0.0, 0.0
    edges = sorted({start_ns, end_ns, *(edge for span in inside for edge in (span.start_ns, span.end_ns) if start_ns < edge < end_ns)})
    streams = [[span for span in inside if span.stream == stream] for stream in ("compute", "comm")]
    nexts = [0, 0]
    busy = useful = spinning = 0.0
    for left, right in pairwise(edges):
        idle, weight, spin, compute_idle = 1.0, 0.0, 0.0, 1.0
        for number, stream in enumerate(streams):
            at = nexts[number]
            while at < len(stream) and stream[at].end_ns <= left:
                at += 1
            nexts[number] = at
            if at == len(stream) or stream[at].start_ns > left:
                continue
            span = stream[at]
            density = span.busy_ns / (span.end_ns - span.start_ns)
            idle *= 1.0 - density
            weight += density * span.sm_active
            if number == 0:
                compute_idle = 1.0 - density
            elif span.kind == "spin":
                spin = density
        busy += (right - left) * (1.0 - idle)
        useful += (right - left) * min(weight, 1.0 - idle)
        spinning += (right - left) * spin * compute_idle
    return busy, useful, spinning


def _merged(spans: list[Span]) -> list[list[Any]]:
    """Spans as rows of the strip event; neighbours of one kind become one."""
    rows: list[list[Any]] = []
    for span in spans:
        row = [span.rank, span.stream, span.kind, span.start_ns // 1000, span.end_ns // 1000]
        if rows and rows[-1][:3] == row[:3] and row[3] - rows[-1][4] <= 20:
            rows[-1][4] = row[4]
        else:
            rows.append(row)
    return rows
