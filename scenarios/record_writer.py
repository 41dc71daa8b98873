"""The writing side of a run's record, held by its supervisor alone. Events are flushed one by one, since viewers tail the file."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any

from scenarios.record import EVENTS, SPANS, encode_event


class RecordWriter:
    """Opens both files of a new record; raises OSError when the disk is full."""

    def __init__(self, run_dir: Path) -> None:
        run_dir.mkdir(parents=True, exist_ok=True)
        self._events = (run_dir / EVENTS).open("ab", buffering=0)
        self._spans = (run_dir / SPANS).open("ab", buffering=1 << 16)
        self._last_id = 0

    def event(self, event: str, data: dict[str, Any]) -> None:
        self._last_id += 1
        self._events.write(encode_event(self._last_id, event, data))
        if event in ("tick", "end"):
            self._spans.flush()  # a killed run keeps its spans up to the last sample

    def spans(self, rows: list[list[Any]]) -> None:
        """Span rows as the ranks sent them."""
        self._spans.write(b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows))

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._spans.close()
        self._events.close()
