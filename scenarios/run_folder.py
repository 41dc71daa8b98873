"""The folder of all run records: creates, finds, closes and prunes them, and survives damaged ones.

Owns `<data_dir>/runs`: names of runs, `config.json`, who is responsible for a run that is not over, and how many records are kept.
Must not start or stop a run; what is inside a record belongs to `record.py`.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from scenarios.cluster.wide import parse_wide
from scenarios.config import RunConfig
from scenarios.record import EVENTS, append_event, end_of, is_event, read_events

Pace = Literal["live", "fast"]

RUN_ID = re.compile(r"[A-Za-z0-9_-]{8,40}")
"""What a run id may look like: no dot and no slash, so that it never leaves its folder."""

COLLECTOR = "collector"
"""Owner of runs whose ranks somebody else started and that report to this data folder's collector."""
IMPORTED = "imported"
"""Owner of records that came as files."""

CLOSING = "closing"
"""Among the owners' locks: whoever holds it ends runs of servers that are gone."""

_TAIL_BYTES = 65_536


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One record as found on disk. `outcome` is None while the run goes on."""

    run_id: str
    config: RunConfig
    created_s: float
    pace: Pace
    owner: str
    backend_reason: str = ""
    """Why it runs on these GPUs, virtual or real: one clause."""
    outcome: str | None = None
    expected: bool = False
    hidden: bool = False
    """Somebody is to find out what runs here: the config is not shown before `Runs.reveal`."""

    @property
    def good(self) -> bool:
        """Whether it may be shown as a result of the same config asked for here. What came from elsewhere has only its own id."""
        if self.owner in (COLLECTOR, IMPORTED) or self.hidden:
            return False
        # That a config does not fit a virtual GPU is a figure like any other. On a real one, memory may have been somebody else's.
        fell_over = self.outcome == "out_of_memory" and self.config.backend != "cuda"
        return self.outcome == "finished" or self.expected or fell_over


class RunFolder:
    """All records below `data_dir`. One instance per process that starts runs; several may share the folder."""

    def __init__(self, data_dir: Path) -> None:
        self.root = data_dir / "runs"
        self.owner = secrets.token_hex(8)
        self._owners = data_dir / "owners"
        self._lock_file: IO[bytes] | None = None
        self._collector_file: IO[bytes] | None = None

    def path(self, run_id: str) -> Path:
        """Raises ValueError for anything that is not a run id."""
        if not RUN_ID.fullmatch(run_id):
            raise ValueError(f"run={run_id[:60]!r}: is not a run id")
        return self.root / run_id

    def claim(self, *, collecting: bool = False) -> None:
        """Take a lock that the kernel frees when this process ends: runs of a living owner are never called interrupted.

        `collecting`: be the one process that collects runs into this folder, too, unless another one is.
        Raises OSError when the folder cannot be written.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        self._owners.mkdir(exist_ok=True)
        self._lock_file = (self._owners / self.owner).open("wb")
        fcntl.flock(self._lock_file, fcntl.LOCK_EX)
        if collecting:
            file = (self._owners / COLLECTOR).open("ab")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._collector_file = file
            except BlockingIOError:
                file.close()

    @property
    def collects(self) -> bool:
        return self._collector_file is not None

    def writable(self) -> bool:
        """Whether a new record could be made, as far as permissions say; a full disk shows itself only in writing."""
        return os.access(self.root, os.W_OK | os.X_OK)

    def release(self) -> None:
        if self._lock_file is not None:
            (self._owners / self.owner).unlink(missing_ok=True)
            self._lock_file.close()
            self._lock_file = None
        if self._collector_file is not None:  # the file stays: another process may hold it open already
            self._collector_file.close()
            self._collector_file = None

    def new_entry(self, config: RunConfig, pace: Pace, *, owner: str = "", hidden: bool = False, backend_reason: str = "") -> Entry:
        """A new run in memory, under an id that says nothing about it."""
        run_id, created_s = secrets.token_hex(8), time.time()
        return Entry(
            run_id=run_id, config=config, created_s=created_s, pace=pace, owner=owner or self.owner, hidden=hidden,
            backend_reason=backend_reason,
        )

    def create(self, entry: Entry) -> None:
        """Its empty record. Raises OSError when it cannot be written; then nothing is left behind."""
        path = self.root / entry.run_id
        try:
            path.mkdir(parents=True)
            self.write_config(entry)
        except OSError:
            shutil.rmtree(path, ignore_errors=True)
            raise

    def write_config(self, entry: Entry) -> None:
        """Raises OSError when it cannot be written."""
        text = json.dumps(
            {
                "run_id": entry.run_id, "key": entry.config.key, "config": entry.config.model_dump(), "created_s": entry.created_s,
                "pace": entry.pace, "owner": entry.owner, "hidden": entry.hidden, "backend_reason": entry.backend_reason,
            }
        )
        path = self.root / entry.run_id / "config.json"
        temporary = path.with_suffix(".new")
        temporary.write_text(text)
        temporary.replace(path)

    def reveal(self, entry: Entry) -> Entry:
        """The same run, no longer hidden. Where the disk refuses that, it is hidden again after a restart."""
        entry = dataclasses.replace(entry, hidden=False)
        with suppress(OSError):
            self.write_config(entry)
        return entry

    def names(self) -> set[str] | None:
        """The ids of all records; None where the folder cannot be read."""
        try:
            return {name for name in os.listdir(self.root) if RUN_ID.fullmatch(name)}
        except OSError:
            return None

    @contextmanager
    def closing(self) -> Iterator[None]:
        """While one server ends what another one left behind, no other does."""
        with ExitStack() as held:
            with suppress(OSError):
                file = held.enter_context((self._owners / CLOSING).open("ab"))
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def load(self) -> list[Entry]:
        """All readable records, oldest first. A damaged one is left where it is and left out here."""
        names = self.names() or ()  # no folder yet, or no folder at all: each run will say so
        entries = [entry for entry in (self.read(name) for name in names) if entry is not None]
        return sorted(entries, key=lambda entry: entry.created_s)

    def read(self, run_id: str) -> Entry | None:
        """One record's entry; None where there is none, or its config cannot be read."""
        path = self.path(run_id)
        try:
            head = json.loads((path / "config.json").read_text())
            pace: Pace = "fast" if head["pace"] == "fast" else "live"
            end = last_end(path)
            return Entry(
                run_id=run_id, config=parse_wide(head["config"]), created_s=float(head["created_s"]), pace=pace,
                owner=str(head.get("owner", "")), backend_reason=str(head.get("backend_reason", "")),
                outcome=str(end["outcome"]) if end else None, expected=bool(end and end.get("expected")), hidden=bool(head.get("hidden")),
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def orphaned(self, entry: Entry) -> bool:
        """Whether a run that is not over has nobody left who could end it."""
        if entry.outcome is not None or entry.owner == self.owner:
            return False
        if entry.owner == COLLECTOR and self.collects:
            return False
        path = self._owners / entry.owner
        if not RUN_ID.fullmatch(entry.owner) or not path.exists():
            return True
        try:
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        if entry.owner != COLLECTOR:
            path.unlink(missing_ok=True)
        return True

    def prune(self, entries: list[Entry], *, keep: int, spared: Collection[str]) -> list[str]:
        """Remove the oldest ended records beyond `keep`, never those in `spared`; returns the ids removed."""
        candidates = [entry for entry in entries if entry.outcome is not None and entry.run_id not in spared]
        removed = [entry.run_id for entry in candidates[: max(0, len(entries) - keep)]]
        for run_id in removed:
            shutil.rmtree(self.path(run_id), ignore_errors=True)
        return removed


def backend_reason_of(run_dir: Path) -> str:
    """Why a run is on the GPUs it is on; empty where its config does not say."""
    try:
        return str(json.loads((run_dir / "config.json").read_text()).get("backend_reason", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def last_end(run_dir: Path) -> dict[str, Any] | None:
    """The data of the `end` event, found from the tail of the record without reading all of it."""
    try:
        with (run_dir / EVENTS).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            tail = file.read()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    lines = tail[: tail.rfind(b"\n") + 1].splitlines()
    if len(lines) < 2 and size > _TAIL_BYTES:
        return end_of(run_dir)
    for line in reversed(lines[-3:]):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if is_event(event) and event["event"] == "end":
            data: dict[str, Any] = event["data"]
            return data if "outcome" in data else None
    return None


def has_begun(run_dir: Path) -> bool:
    """Whether the ranks have taken their first step."""
    try:
        with (run_dir / EVENTS).open("rb") as file:
            head = file.read(4096)
    except OSError:
        return False
    return b'"running"' in head or b'"event":"tick"' in head


def shown_until_ms(run_dir: Path) -> int:
    """Virtual milliseconds up to which a record has samples."""
    times_ms = (event["data"].get("t_ms") for event in read_events(run_dir) if event["event"] == "tick")
    return max((t_ms for t_ms in times_ms if isinstance(t_ms, int)), default=0)


def end_data(outcome: str, sentence: str, *, t_ms: int = 0, error: str | None = None) -> dict[str, Any]:
    """The `end` event of a run whose supervisor could not write it."""
    return {
        "outcome": outcome, "expected": False, "t_ms": t_ms, "sentence": sentence, "rank": None, "error": error, "summary": None,
    }


def close_record(run_dir: Path, outcome: str, sentence: str, *, error: str | None = None) -> dict[str, Any]:
    """Append the `end` that is missing, keeping what is there; returns its data. Raises OSError when it cannot be written.

    `{t}` in the sentence becomes the seconds shown so far.
    """
    t_ms = shown_until_ms(run_dir)
    data = end_data(outcome, sentence.replace("{t}", f"{t_ms / 1000:.1f} s"), t_ms=t_ms, error=error)
    append_event(run_dir, "end", data)
    return data
