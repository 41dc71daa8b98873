"""What a rank says of itself: one message a step, one at the end, one when it fails. Free of torch.

Owns the shape of the messages. How they travel (a pipe, a file, HTTP) is not its business.
"""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import Any

from scenarios.telemetry import Span

Message = dict[str, Any]
Send = Callable[[Message], None]


def pack_span(span: Span) -> list[Any]:
    return [span.rank, span.stream, span.kind, span.step, span.start_ns, span.end_ns, span.busy_ns, span.sm_active]


def unpack_span(row: Sequence[Any]) -> Span:
    rank, stream, kind, step, start_ns, end_ns, busy_ns, sm_active = row
    return Span(
        rank=rank, stream=stream, kind=kind, step=step, start_ns=start_ns, end_ns=end_ns, busy_ns=busy_ns, sm_active=sm_active
    )


def pack_serials(serials: Sequence[int]) -> str:
    return b64encode(array("i", serials).tobytes()).decode()


def pack_floats(values: Sequence[float]) -> str:
    return b64encode(array("f", values).tobytes()).decode()


def unpack_floats(text: str) -> array[float]:
    """Raises ValueError for what is no base64 of whole 32-bit floats."""
    values = array("f")
    values.frombytes(b64decode(text, validate=True))
    return values


def unpack_serials(text: str) -> array[int]:
    serials = array("i")
    serials.frombytes(b64decode(text))
    return serials
