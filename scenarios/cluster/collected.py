"""One run that reports to this app: what it has accepted lies on disk before it is acknowledged, and survives a restart.

Owns the log of accepted messages and their numbers. When a run is over belongs to `collector.py`. Not thread-safe: its owner holds `lock`.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from scenarios.cluster.assembly import Assembly
from scenarios.cluster.parts import encode_line
from scenarios.cluster.resuming import ResumingWriter
from scenarios.cluster.wire import checked
from scenarios.rank_messages import Message
from scenarios.run_folder import Entry

ACCEPTED = "accepted.jsonl"
"""In the run's record while it goes on: one line [rank, number, message] for each message, in the order of acceptance."""

NUMBERS = "accepted.json"
"""What is left of it in the record of a run that is over: the number of the next message of each rank."""


class Gap(ValueError):
    """A batch begins after the message that is wanted; `wanted` is its number."""

    def __init__(self, rank: int, wanted: int) -> None:
        super().__init__(f"Rank {rank}'s next message must be number {wanted}.")
        self.wanted = wanted


class CollectedRun:
    """Opens the record of `entry`, which exists, and takes in again what was accepted earlier. Raises OSError when that is impossible."""

    def __init__(self, entry: Entry, run_dir: Path) -> None:
        self.entry = entry
        self.lock = threading.Lock()
        self.heard_s = time.monotonic()
        self.failed_s: float | None = None
        self.over = False
        """Its end is written. Not to be confused with `closed`."""
        self.closed = False
        self._wanted: dict[int, int] = {}
        self._path = run_dir / ACCEPTED
        self._record = ResumingWriter(run_dir)
        self._assembly = Assembly(entry.config, self._record, recorded_s=entry.created_s)
        self._log = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        self.bytes = self._take_in_again()

    @property
    def all_ended(self) -> bool:
        return self._assembly.all_ended

    def wanted(self, rank: int) -> int:
        """The number of the message that comes next."""
        return self._wanted.get(rank, 0)

    def take(self, rank: int, batch: list[tuple[int, Any]]) -> int:
        """Accept what is new in `batch`, whose numbers follow each other; returns the number of the next message.

        Raises ValueError, with a sentence, for a message that cannot be one of this run, and OSError where the disk refuses; nothing of
        the batch is accepted then.
        """
        self.heard_s = time.monotonic()
        new = [(number, message) for number, message in batch if number >= self.wanted(rank)]
        if not new:
            return self.wanted(rank)
        if new[0][0] > self.wanted(rank):
            raise Gap(rank, self.wanted(rank))
        messages = [checked(message, rank) for _, message in new]
        self._assembly.check_all(rank, messages)
        self._keep(b"".join(encode_line([rank, number, message]) for number, message in new))
        for message in messages:
            self._take(rank, message)
        return self.wanted(rank)

    def conclude(self) -> dict[str, Any]:
        """Write the end; nothing can be taken afterwards. Raises OSError where the disk refuses."""
        end = self._assembly.conclude()
        self.over = True
        self.close()
        self._path.with_name(NUMBERS).write_text(json.dumps(self._wanted))
        self._path.unlink(missing_ok=True)
        return end

    def close(self) -> None:
        """Let go of the files; the run may be opened again."""
        self.closed = True
        self._record.__exit__(None, None, None)
        if self._log >= 0:
            os.close(self._log)
            self._log = -1

    def _take(self, rank: int, message: Message) -> None:
        self._assembly.take(rank, message)
        self._wanted[rank] = self.wanted(rank) + 1
        if self._assembly.failed and self.failed_s is None:
            self.failed_s = time.monotonic()

    def _keep(self, lines: bytes) -> None:
        """On disk, all of it or nothing."""
        try:
            done = 0
            while done < len(lines):
                done += os.pwrite(self._log, lines[done:], self.bytes + done)
            os.fsync(self._log)
        except OSError:
            os.ftruncate(self._log, self.bytes)
            raise
        self.bytes += len(lines)

    def _take_in_again(self) -> int:
        """Returns the length of what was accepted; the rest of a line that was being written is cut off."""
        whole = 0
        with self._path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                rank, number, message = json.loads(line)
                if number == self.wanted(rank):
                    self._take(rank, message)
                whole += len(line)
        os.ftruncate(self._log, whole)
        return whole


def numbers_of(run_dir: Path) -> dict[int, int]:
    """The numbers of the messages that a run which is over would have wanted next."""
    try:
        return {int(rank): int(number) for rank, number in json.loads((run_dir / NUMBERS).read_text()).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
