"""A folder of ranks' parts becomes a record in the data folder, as if the run had been made here.

Owns reading the folder and its faults. What the messages amount to belongs to `assembly.py`.
"""

from __future__ import annotations

import heapq
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scenarios.cluster.assembly import Assembly
from scenarios.cluster.parts import PartReader, parts_in
from scenarios.cluster.wire import Hello, checked
from scenarios.rank_messages import Message
from scenarios.record_writer import RecordWriter
from scenarios.run_folder import IMPORTED, Entry, RunFolder


def import_folder(folder: Path, data_dir: Path) -> tuple[Entry, dict[str, Any]]:
    """The new record's entry and the data of its `end`. Raises ValueError for a folder that cannot be used, OSError for a full disk."""
    parts = parts_in(folder)
    first = next((found for found in map(_hello, parts) if found is not None), None)
    if first is None:
        raise ValueError(f"folder={str(folder)!r}: must hold parts that begin with their ranks' hello")
    present = [part.rank for part in parts]
    missing = [rank for rank in range(first.world) if rank not in present]
    if missing or len(present) != first.world:
        wanted = ", ".join(map(str, missing)) or "none"
        raise ValueError(
            f"folder={str(folder)!r}: must hold the parts of all {first.world} ranks of one run; missing: {wanted}. "
            "Copy the files of every node into one folder."
        )
    runs = RunFolder(data_dir)
    entry = runs.new_entry(first.run_config, "fast", owner=IMPORTED)
    unfinished = runs.root / f".{entry.run_id}"  # no run id: a server that starts now does not take it for one of its own
    unfinished.mkdir(parents=True)
    try:
        with RecordWriter(unfinished) as record:
            assembly = Assembly(entry.config, record, recorded_s=first.started_s or entry.created_s)
            # In the order of virtual time, so that little waits in memory.
            for _, _, rank, message in heapq.merge(*(_timed(part) for part in parts)):
                assembly.check(rank, message)
                assembly.take(rank, message)
            end = assembly.conclude()
        unfinished.rename(runs.path(entry.run_id))
        runs.write_config(entry)
    except (ValueError, OSError):
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return entry, end


def _hello(part: PartReader) -> Hello | None:
    """None for a rank that wrote nothing."""
    first = next(_checked(part), None)
    return None if first is None or first["kind"] != "hello" else Hello.model_validate(first)


def _timed(part: PartReader) -> Iterator[tuple[int, int, int, Message]]:
    """With a key that orders the ranks' messages and is never the same twice."""
    at_ns = -1
    for number, message in enumerate(_checked(part)):
        at_ns = max(at_ns, message.get("end_ns", at_ns))
        yield at_ns, number * 1000 + part.rank, part.rank, message


def _checked(part: PartReader) -> Iterator[Message]:
    for expected, (number, message) in enumerate(part.messages()):
        if number != expected:
            raise ValueError(f"part={str(part.path)!r}: message {expected} is missing")
        try:
            yield checked(message, part.rank)
        except ValueError as error:
            raise ValueError(f"part={str(part.path)!r}: message {expected}: {error}") from None
