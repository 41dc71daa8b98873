"""One step of a real rank while it happens: marks on the GPU's stream, times of the host, and the spans that they become.

A script may go forward and backward several times in a step. Between two marks the kernels are taken to follow each other: gaps between
them are not seen, nor how many SMs a kernel fills. Of an all-reduce only what no backward pass hides is seen: the stream waits for it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from scenarios.rank_messages import pack_serials, pack_span
from scenarios.telemetry import Kind, Span, Stream
from scenarios.worker.clock import Clock, Mark

_STREAM: dict[Kind, Stream] = {"copy": "copy", "all_reduce": "comm", "scatter": "comm", "spin": "comm"}
SHORTEST_NS = 20_000
"""A shorter wait for gradients is the time between two marks."""


@dataclass(kw_only=True)
class RealStep:
    number: int
    idle_since_ns: int = 0
    """When the host began to look for the step's batch."""
    progress: float = 0.0
    steps_per_epoch: int = 1
    learning_rate: float | None = None
    batches: list[Tensor] = field(default_factory=list)
    """Serial numbers, in host memory once the step has ended."""
    sketch: Tensor | None = None
    ended: Mark = None
    _empty_handed: bool = True
    _work: list[tuple[Kind, Mark, Mark]] = field(default_factory=list)
    _host: list[tuple[Kind, int, int]] = field(default_factory=list)
    _forward: Mark = None
    _backward: Mark = None
    _gradient: Mark = None
    """When the last gradient of the backward pass was there."""
    _optimizer: Mark = None

    def loaded(self, now_ns: int, kind: Kind) -> None:
        """The script has a batch in hand: the first of the step, or of a pass of its own."""
        if self._empty_handed and now_ns > self.idle_since_ns > 0:
            self._host.append((kind, self.idle_since_ns, now_ns))
        self._empty_handed = False

    def host(self, kind: Kind, start_ns: int, end_ns: int) -> None:
        self._host.append((kind, start_ns, end_ns))

    def work(self, kind: Kind, start: Mark, end: Mark) -> None:
        self._work.append((kind, start, end))

    def forward_from(self, mark: Mark) -> None:
        self._forward = mark

    def validated_to(self, mark: Mark) -> None:
        """A forward pass over held-out samples is over: the next batch is looked for."""
        self._work.append(("validate", self._forward, mark))
        self.idle_since_ns, self._empty_handed = time.monotonic_ns(), True

    def forward_to(self, mark: Mark) -> None:
        self._work.append(("forward", self._forward, mark))
        self._backward = mark

    def backward_to(self, mark: Mark) -> None:
        if self._backward is not None:
            self._work.append(("backward", self._backward, mark))
        self._backward, self._gradient = None, mark

    def reduced_at(self, mark: Mark) -> None:
        """The backward pass has returned, and the stream waits for the gradients of all ranks, if they are exchanged."""
        self._work.append(("all_reduce", self._gradient, mark))
        self.idle_since_ns, self._empty_handed = time.monotonic_ns(), True

    def optimizer_from(self, mark: Mark) -> None:
        self._optimizer = mark

    def end(self, mark: Mark) -> None:
        self._work.append(("optimizer", self._optimizer, mark))
        self.ended = mark

    @property
    def samples(self) -> int:
        """Of the largest batch."""
        return max((len(batch) for batch in self.batches), default=0)

    def packed_serials(self) -> str:
        return pack_serials([serial for batch in self.batches for serial in batch.tolist()])

    def timed(self, clock: Clock) -> list[tuple[Kind, Stream, int, int]]:
        """Everything on one clock, in the order of its streams."""
        device = [(kind, _STREAM.get(kind, "compute"), clock.ns(start), clock.ns(end)) for kind, start, end in self._work]
        return [*((kind, "host", start, end) for kind, start, end in self._host), *device]


def steps_spans(step: RealStep, clock: Clock, *, zero_ns: int, rank: int, alone: bool) -> list[list[Any]]:
    """The step's spans as rows of a message. `alone`: there is no rank to reduce with."""
    rows = []
    for kind, stream, start, end in step.timed(clock):
        start_ns, end_ns = max(0, start - zero_ns), max(0, end - zero_ns)
        if end_ns <= start_ns or (kind == "all_reduce" and (alone or end_ns - start_ns < SHORTEST_NS)):
            continue
        busy_ns = 0 if stream in ("host", "copy") else end_ns - start_ns
        rows.append(
            pack_span(
                Span(
                    rank=rank, stream=stream, kind=kind, step=step.number, start_ns=start_ns, end_ns=end_ns, busy_ns=busy_ns, sm_active=0.0
                )
            )
        )
    return rows
