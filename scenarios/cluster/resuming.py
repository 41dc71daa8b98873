"""Writing a record anew from what was accepted before a restart: what is on disk already is left as it is and not written twice.

Owns that one difference to `RecordWriter`. The same messages in the same order give the same events, so counting them is enough.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scenarios.record import EVENTS, SPANS
from scenarios.record_writer import RecordWriter


class ResumingWriter(RecordWriter):
    """A record that may have been begun."""

    def __init__(self, run_dir: Path) -> None:
        self._events_there = _whole_lines(run_dir / EVENTS)
        self._spans_there = _whole_lines(run_dir / SPANS)
        super().__init__(run_dir)

    def event(self, event: str, data: dict[str, Any]) -> None:
        if self._last_id < self._events_there:
            self._last_id += 1
        else:
            super().event(event, data)

    def spans(self, rows: list[list[Any]]) -> None:
        there = min(self._spans_there, len(rows))
        self._spans_there -= there
        if rows[there:]:
            super().spans(rows[there:])


def _whole_lines(path: Path) -> int:
    """How many there are; what follows the last newline is cut off."""
    if not path.exists():
        return 0
    lines = whole = 0
    with path.open("r+b") as file:
        for line in file:
            if line.endswith(b"\n"):
                lines += 1
                whole += len(line)
        file.truncate(whole)
    return lines
