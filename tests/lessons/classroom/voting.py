"""A server that does nothing but take votes in four threads, and prints each one once it is acknowledged.

`python -m tests.lessons.classroom.voting DATA_DIR DATABASE_URL CODE`, tokens on standard input; ends after a minute.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from pathlib import Path

from lessons.classroom import Classroom
from lessons.store import open_store

CHOICES = ("m4", "q7", "t2", "x8")


def vote_on(room: Classroom, code: str, tokens: list[str], until_s: float) -> None:
    for choice in itertools.cycle(CHOICES):
        for token in tokens:
            if time.monotonic() > until_s:
                return
            room.vote(code, token, round="first", choice=choice, item_no=1)
            print(f"{token} {choice}\n", end="", flush=True)


if __name__ == "__main__":
    known = sys.stdin.read().split()
    opened = Classroom(open_store(Path(sys.argv[1]), sys.argv[2]))
    for part in range(4):
        threading.Thread(target=vote_on, args=(opened, sys.argv[3], known[part::4], time.monotonic() + 60)).start()
