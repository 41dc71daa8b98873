"""What a rank tells its supervisor: one message a step, one at the end, one when it fails.

Owns the messages and the pipe. Writing waits only while the supervisor's buffer of a megabyte is full; virtual time does not pass then.
"""

from __future__ import annotations

import json
import os
from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import Any

from scenarios.telemetry import Span

Message = dict[str, Any]
Send = Callable[[Message], None]


def pipe_sender(fd: int) -> Send:
    """Messages as JSON lines into `fd`."""

    def send(message: Message) -> None:
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        view = memoryview(line)
        while view:
            view = view[os.write(fd, view) :]

    return send


def pack_span(span: Span) -> list[Any]:
    return [span.rank, span.stream, span.kind, span.step, span.start_ns, span.end_ns, span.busy_ns, span.sm_active]


def unpack_span(row: Sequence[Any]) -> Span:
    rank, stream, kind, step, start_ns, end_ns, busy_ns, sm_active = row
    return Span(
        rank=rank, stream=stream, kind=kind, step=step, start_ns=start_ns, end_ns=end_ns, busy_ns=busy_ns, sm_active=sm_active
    )


def pack_serials(serials: Sequence[int]) -> str:
    return b64encode(array("i", serials).tobytes()).decode()


def unpack_serials(text: str) -> array[int]:
    serials = array("i")
    serials.frombytes(b64decode(text))
    return serials
