"""What may stand in a rank's message, checked: it may come from anywhere, and what passes is fed to the recorder.

Owns the checks of one message alone. What must hold between messages belongs to `assembly.py`.
"""

from __future__ import annotations

import dataclasses
import socket
import time
from base64 import b64decode
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scenarios.cards import Card
from scenarios.cluster.wide import MOST_RANKS, parse_wide
from scenarios.config import RunConfig
from scenarios.rank_messages import Message, unpack_floats, unpack_serials
from scenarios.telemetry import KINDS, SAMPLE_PERIOD_NS, STREAMS

LONGEST_RUN_NS = 86_400 * 10**9
LONGEST_STEP_NS = 600 * 10**9
MOST_SPANS = 4_000
TEXT = 20_000

_Number = Annotated[float, Field(allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, le=10**9)]


class _Message(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Card(_Message):
    label: str = Field(min_length=1, max_length=100)
    memory_gib: Annotated[_Number, Field(gt=0, le=1e6)] | None
    power_limit_w: Annotated[_Number, Field(gt=0, le=1e6)] | None


class Hello(_Message):
    """The first message of every rank: who it is and what it runs."""

    format: Literal[1]
    rank: int = Field(ge=0, lt=MOST_RANKS)
    world: int = Field(ge=1, le=MOST_RANKS)
    node: int = Field(ge=0, lt=1024)
    host: str = Field(max_length=255, pattern=r"^[A-Za-z0-9._:-]*$")
    config: dict[str, Any]
    collective_limit_s: float = Field(gt=0, le=86_400)
    started_s: float = Field(default=0.0, ge=0, le=1e11)
    card: _Card | None = None
    """What the rank's GPU is, where it is a real one."""
    backend_reason: str = Field(default="", max_length=500)

    @property
    def run_config(self) -> RunConfig:
        """Raises ValueError as `RunConfig.parse` does."""
        return parse_wide(self.config)


class _Step(_Message):
    step: _Count
    trained: bool
    progress: Annotated[_Number, Field(ge=0, le=1e6)]
    steps_per_epoch: Annotated[int, Field(ge=1, le=10**9)]
    batch: _Count
    learning_rate: _Number | None
    memory_gib: Annotated[_Number, Field(ge=0, le=1e6)]
    apart: Annotated[_Number, Field(ge=0)]
    processes: Annotated[int, Field(ge=1, le=1024)] = 1
    end_ns: Annotated[int, Field(ge=0, le=LONGEST_RUN_NS)]
    spans: list[list[Any]] = Field(max_length=MOST_SPANS)
    serials: str = Field(max_length=1 << 20)
    sketch: str = Field(default="", max_length=1 << 14)
    """A few of the parameters, on real GPUs."""


class _Figures(_Message):
    gpu_util: Annotated[_Number, Field(ge=0, le=100)] | None
    sm_active: Annotated[_Number, Field(ge=0, le=100)] | None
    memory_gib: Annotated[_Number, Field(ge=0, le=1e6)] | None
    power_w: Annotated[_Number, Field(ge=0, le=1e6)] | None
    processes: _Count | None


class _Reading(_Message):
    """What NVML read of the rank's GPU over one sample period; null where it answers no more."""

    end_ns: Annotated[int, Field(gt=0, le=LONGEST_RUN_NS, multiple_of=SAMPLE_PERIOD_NS)]
    gpu: _Figures | None


class _Lane(_Message):
    """The rank's GPU answers NVML no more."""

    message: str = Field(min_length=1, max_length=500)


class _Done(_Message):
    checksum: Annotated[str, Field(max_length=64)] | None


class _Error(_Message):
    type: str = Field(max_length=100)
    message: str = Field(max_length=TEXT)
    traceback: str = Field(max_length=TEXT)
    at_s: float = Field(default=0.0, ge=0, le=1e11)
    """When, by the clock of the rank's node."""


_KINDS: dict[str, type[_Message]] = {"hello": Hello, "step": _Step, "done": _Done, "error": _Error, "reading": _Reading, "lane": _Lane}


def hello(
    config: RunConfig, *, rank: int, world: int, node: int, collective_limit_s: float, card: Card | None = None, backend_reason: str = ""
) -> Message:
    host = "".join(letter for letter in socket.gethostname() if letter.isascii() and (letter.isalnum() or letter in "._-"))
    return {
        "kind": "hello", "format": 1, "rank": rank, "world": world, "node": node, "host": host, "config": config.model_dump(),
        "collective_limit_s": collective_limit_s, "started_s": time.time(),
        "card": None if card is None else dataclasses.asdict(card), "backend_reason": backend_reason,
    }


def checked(message: Any, rank: int) -> Message:
    """`message` itself. Raises ValueError with a sentence."""
    kind = message.get("kind") if isinstance(message, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"A message must be an object whose kind is one of {', '.join(_KINDS)}.")
    try:
        parsed = _KINDS[kind].model_validate(message)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise ValueError(f"A {kind} message has a field that cannot be used: {where}: {fault['msg']}.") from None
    if isinstance(parsed, Hello):
        if parsed.rank != rank or rank >= parsed.world:
            raise ValueError(f"A hello message of rank {rank} must name that rank and a world that holds it.")
        if parsed.run_config.gpus != parsed.world:
            raise ValueError(f"A hello message must name as many ranks as its config has GPUs, {parsed.run_config.gpus}.")
    if isinstance(parsed, _Step):
        _check_spans(parsed, rank)
        try:
            b64decode(parsed.serials, validate=True)
            serials = unpack_serials(parsed.serials)
        except ValueError:
            raise ValueError("A step message's serials must be whole 32-bit integers in base64.") from None
        try:
            unpack_floats(parsed.sketch)
        except ValueError:
            raise ValueError("A step message's sketch must be whole 32-bit numbers in base64.") from None
        if any(serial < 0 for serial in serials):
            raise ValueError("A step message's serials must not be negative.")
    result: Message = message
    return result


def _check_spans(message: _Step, rank: int) -> None:
    for row in message.spans:
        if not _is_span(row, rank):
            raise ValueError(f"A span must be [rank, stream, kind, step, start, end, busy, activity] of rank {rank}, in order of time.")


def _is_span(row: list[Any], rank: int) -> bool:
    if len(row) != 8 or row[0] != rank or row[1] not in STREAMS or row[2] not in KINDS:
        return False
    *times, active = row[3:]
    if any(type(number) is not int for number in times) or type(active) not in (int, float):
        return False
    step, start_ns, end_ns, busy_ns = times
    in_order = 0 <= step <= 10**9 and 0 <= start_ns < end_ns <= LONGEST_RUN_NS
    return bool(in_order and 0 <= busy_ns <= end_ns - start_ns and 0 <= active <= 1)
