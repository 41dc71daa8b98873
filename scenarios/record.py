"""The record of a run on disk: written once by its supervisor, read by everyone else.

A record is a folder with `config.json`, `events.jsonl` (what viewers see, ids from 1 without gaps), `spans.jsonl` and one log per
rank. It alone is enough to replay, compare, export and diagnose a run. Owns the format; must not start, stop or draw anything.
A truncated last line (a killed writer, a full disk) is ignored: everything before it stays readable.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from scenarios.telemetry import KINDS, STREAMS, Sample, Span

EVENTS = "events.jsonl"
SPANS = "spans.jsonl"
COMPUTED = "computed"
"""An empty file: the ranks have ended, and what they computed is still being shown at its own pace."""

CSV_COLUMNS = (
    "source", "time_s", "gpu", "step", "epoch", "epoch_pct", "gpu_util_pct", "sm_active_pct", "spin_pct",
    "memory_gib", "power_w", "learning_rate", "weights_apart", "distinct_pct", "repeated_pct", "processes",
)

Event = dict[str, Any]
"""{"id": int, "event": "head"|"state"|"tick"|"strip"|"lane"|"end", "data": {...}}; `lane`: a GPU answers no more"""


def encode_event(event_id: int, event: str, data: dict[str, Any]) -> bytes:
    """One line of events.jsonl."""
    return json.dumps({"id": event_id, "event": event, "data": data}, separators=(",", ":")).encode() + b"\n"


def read_events(run_dir: Path, after_id: int = 0) -> list[Event]:
    """All whole events with an id above `after_id`, in order; empty where there is no record yet."""
    return [event for event in _json_lines(run_dir / EVENTS) if is_event(event) and event["id"] > after_id]


def is_event(event: Any) -> bool:
    """Whether it has the shape of an Event. What is inside its data is not looked at."""
    return (
        isinstance(event, dict)
        and isinstance(event.get("id"), int) and isinstance(event.get("event"), str) and isinstance(event.get("data"), dict)
    )


def append_event(run_dir: Path, event: str, data: dict[str, Any]) -> int:
    """Append one event after the last whole one and return its id. Only for a record whose supervisor has ended.

    Raises OSError when it cannot be written.
    """
    path = run_dir / EVENTS
    whole = path.read_bytes() if path.exists() else b""
    whole = whole[: whole.rfind(b"\n") + 1]
    events = read_events(run_dir)
    event_id = events[-1]["id"] + 1 if events else 1
    with path.open("r+b" if path.exists() else "wb") as file:
        file.truncate(len(whole))
        file.seek(len(whole))
        file.write(encode_event(event_id, event, data))
        file.flush()
        os.fsync(file.fileno())
    return event_id


def end_of(run_dir: Path) -> dict[str, Any] | None:
    """The data of the `end` event; None while the run goes on."""
    return next((event["data"] for event in reversed(read_events(run_dir)) if event["event"] == "end"), None)


def is_over(run_dir: Path) -> bool:
    return end_of(run_dir) is not None


def summary_of(run_dir: Path) -> dict[str, Any] | None:
    """The summary of an ended run; None while it goes on, or where it ended without one."""
    end = end_of(run_dir)
    return end["summary"] if end else None


def spans_of(run_dir: Path) -> Iterator[Span]:
    """The spans in the order of writing; damaged lines are left out."""
    for row in _json_lines(run_dir / SPANS):
        if isinstance(row, list) and len(row) == 8 and row[1] in STREAMS and row[2] in KINDS and _numbers([row[0], *row[3:]]):
            rank, stream, kind, step, start_ns, end_ns, busy_ns, sm_active = row
            yield Span(
                rank=rank, stream=stream, kind=kind, step=step,
                start_ns=start_ns, end_ns=end_ns, busy_ns=busy_ns, sm_active=sm_active,
            )


def tick_of(samples: list[Sample]) -> dict[str, Any]:
    """The `tick` event of one sample period: `samples` of all ranks, in rank order."""
    first = max(samples, key=lambda sample: (sample.epoch, sample.epoch_pct))
    # A rank with fewer batches is through an epoch before the others are: the job is as far as its last rank.
    begun = [sample for sample in samples if (sample.epoch, sample.epoch_pct) > (0, 0.0)] or samples
    last = min(begun, key=lambda sample: (sample.epoch, sample.epoch_pct))
    return {
        "t_ms": samples[0].end_ns // 1_000_000,
        "step": max(sample.step for sample in samples),
        "epoch": last.epoch,
        "epoch_pct": round(last.epoch_pct, 2),
        "util": [_rounded(sample.gpu_util, 1) for sample in samples],
        "useful": [_rounded(sample.sm_active, 1) for sample in samples],
        "spin": [_rounded(sample.spin_pct, 1) for sample in samples],
        "mem": [_rounded(sample.memory_gib, 2) for sample in samples],
        "power": [_rounded(sample.power_w, 0) for sample in samples],
        "lr": [_rounded(sample.learning_rate, 6) for sample in samples],
        "apart": [_rounded(sample.weights_apart, 6) for sample in samples],
        "distinct": _rounded(first.distinct_pct, 2),
        "repeated": _rounded(first.repeated_pct, 2),
        "procs": [sample.processes for sample in samples],
    }


def samples_of(run_dir: Path) -> list[Sample]:
    """All samples of a run, ordered by time and rank, as the viewers saw them; damaged ticks are left out."""
    samples: list[Sample] = []
    for event in read_events(run_dir):
        if event["event"] != "tick":
            continue
        try:
            samples += _samples_of_tick(event["data"])
        except (KeyError, TypeError, IndexError):
            continue
    return samples


def _samples_of_tick(tick: dict[str, Any]) -> list[Sample]:
    return [
        Sample(
            rank=rank, end_ns=tick["t_ms"] * 1_000_000, step=tick["step"], epoch=tick["epoch"], epoch_pct=tick["epoch_pct"],
            gpu_util=tick["util"][rank], sm_active=tick["useful"][rank], spin_pct=tick["spin"][rank],
            memory_gib=tick["mem"][rank], power_w=tick["power"][rank],
            learning_rate=tick["lr"][rank], weights_apart=tick["apart"][rank],
            distinct_pct=tick.get("distinct"), repeated_pct=tick.get("repeated"),
            processes=tick["procs"][rank] if "procs" in tick else None,
        )
        for rank in range(len(tick["util"]))
    ]


def head_of(run_dir: Path) -> dict[str, Any]:
    """The data of the `head` event: GPUs, limits, source. Empty where the record has none."""
    return next((event["data"] for event in read_events(run_dir) if event["event"] == "head"), {})


def source_of(run_dir: Path) -> str:
    """`virtual` or `nvml`, as the record's head says; `unknown` where the record has none."""
    return str(head_of(run_dir).get("source", "unknown"))


def samples_csv(run_dir: Path) -> str:
    """The samples as CSV, one row per GPU and period; an empty cell was not measured."""
    return "".join(csv_lines(run_dir))


def csv_lines(run_dir: Path) -> Iterator[str]:
    """`samples_csv`, line by line. Cells are numbers or one of three words, so that no spreadsheet takes one for a formula."""
    yield _csv_line(CSV_COLUMNS)
    source = source_of(run_dir)
    source = source if source in ("virtual", "nvml") else "unknown"
    for sample in samples_of(run_dir):
        yield _csv_line(
            [source, sample.end_ns / 1e9, sample.rank, sample.step, sample.epoch, sample.epoch_pct, sample.gpu_util, sample.sm_active,
             sample.spin_pct, sample.memory_gib, sample.power_w, sample.learning_rate, sample.weights_apart,
             sample.distinct_pct, sample.repeated_pct, sample.processes]
        )


def _csv_line(cells: Sequence[str | float | None]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def _json_lines(path: Path) -> Iterator[Any]:
    """Every whole line that is JSON. What follows the last newline is not whole."""
    try:
        file = path.open("rb")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return
    with file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                continue
