"""One rank's part of a record: an append-only file of its messages, which may be sent from while it grows, or imported later.

Owns the file's form: a first line that says what it is, then one line `[number, message]` for each message, numbered from 0 without gaps.
A last line that is not whole (a killed writer, a full disk) is not there.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scenarios.rank_messages import Message

PART_NAME = re.compile(r"rank-(\d{1,3})\.jsonl")
RECYCLE_BYTES = 8 << 20
"""A part that is only a waiting room starts anew when all of it was sent and it is this large."""


def part_path(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.jsonl"


class PartFile:
    """Written by one thread, read by another. Raises OSError when the disk refuses."""

    def __init__(self, folder: Path, *, run: str, rank: int, kept: bool) -> None:
        """`kept`: a record to stay; else a waiting room, removed by `close` once all of it was sent. Raises FileExistsError."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o777 if kept else 0o700)
        self.path = part_path(folder, rank)
        self._kept = kept
        self._head = encode_line({"shardlab": 1, "run": run, "rank": rank})
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666 if kept else 0o600)
        self._lock = threading.Lock()
        self.written = 0
        """Messages so far; the number of the next."""
        self.sent = 0
        self._first = 0
        self._size = self._read_at = len(self._head)
        os.pwrite(self._file, self._head, 0)

    @property
    def unsent(self) -> int:
        return self.written - self.sent

    def append(self, message: Message) -> None:
        line = encode_line([self.written, message])
        with self._lock:
            done = 0
            while done < len(line):  # a part of a line that a full disk cuts off is overwritten by the next try
                done += os.pwrite(self._file, line[done:], self._size + done)
            self._size += len(line)
            self.written += 1

    def batch(self, limit_bytes: int) -> list[bytes]:
        """The next lines to send: as many as fit, at least one if there is one."""
        with self._lock:
            wanted = limit_bytes
            while True:
                block = os.pread(self._file, min(wanted, self._size - self._read_at), self._read_at)
                whole = block[: block.rfind(b"\n") + 1]
                if whole or wanted >= self._size - self._read_at:
                    return whole.splitlines()
                wanted *= 2

    def mark_sent(self, lines: list[bytes]) -> None:
        with self._lock:
            self._read_at += sum(len(line) + 1 for line in lines)
            self.sent += len(lines)
            if not self._kept and self.sent == self.written and self._size > RECYCLE_BYTES:
                os.ftruncate(self._file, len(self._head))
                self._size = self._read_at = len(self._head)
                self._first = self.written

    def send_again_from(self, number: int) -> bool:
        """Go back to message `number`; False where it is no longer here."""
        with self._lock:
            if not self._first <= number <= self.sent:
                return False
            with open(self.path, "rb") as file:
                file.seek(len(self._head))
                for _ in range(number - self._first):
                    file.readline()
                self._read_at = file.tell()
            self.sent = number
            return True

    def close(self) -> None:
        os.close(self._file)
        if not self._kept and not self.unsent:
            self.path.unlink(missing_ok=True)
            try:
                self.path.parent.rmdir()
            except OSError:  # other ranks' parts are in there
                pass


class PartReader:
    """A part as it lies on disk. Raises ValueError, with one line, for a file that is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                head = json.loads(file.readline(4096))
            if head["shardlab"] != 1:
                raise ValueError
            self.run, self.rank = str(head["run"]), int(head["rank"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise ValueError(f"part={str(path)!r}: is not a rank's part of a record") from None

    def lines(self) -> Iterator[bytes]:
        """Whole lines after the first, without their ends."""
        with self.path.open("rb") as file:
            file.readline()
            for line in file:
                if not line.endswith(b"\n"):
                    return
                yield line[:-1]

    def messages(self) -> Iterator[tuple[int, Any]]:
        """Raises ValueError at a line that is not one of ours."""
        for line in self.lines():
            try:
                number, message = json.loads(line)
            except (ValueError, TypeError, RecursionError):
                raise ValueError(f"part={str(self.path)!r}: holds a line that is no message: {line[:40]!r}") from None
            yield number, message


def parts_in(folder: Path) -> list[PartReader]:
    """All parts of a folder, by rank; raises ValueError for a folder without any."""
    try:
        names = [name for name in os.listdir(folder) if PART_NAME.fullmatch(name)]
    except OSError as error:
        raise ValueError(f"folder={str(folder)!r}: {error.strerror or error}") from None
    if not names:
        raise ValueError(f"folder={str(folder)!r}: must hold the files rank-0.jsonl and so on that ranks wrote with --record")
    return sorted((PartReader(folder / name) for name in names), key=lambda part: part.rank)


def encode_line(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"
