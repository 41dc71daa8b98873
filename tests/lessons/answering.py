"""A server that does nothing but lock in answers, in four threads, and prints each one's token once it is acknowledged.

`python -m tests.lessons.answering DATA_DIR DATABASE_URL`; never ends by itself for a minute.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from lessons import load_lessons
from lessons.attempts import AttemptStore
from lessons.learners import new_token
from lessons.store import open_store


def answer_on(store: AttemptStore, until_s: float) -> None:
    lesson = load_lessons().lessons[0]
    while time.monotonic() < until_s:
        learner = new_token()
        attempt = store.open(lesson, learner=learner)
        attempt = store.lock_in(attempt, lesson, lesson.options[0].id, "certain", learner=learner)
        print(f"{attempt.token} {learner}\n", end="", flush=True)


if __name__ == "__main__":
    opened = AttemptStore(open_store(Path(sys.argv[1]), sys.argv[2]))
    for _ in range(4):
        threading.Thread(target=answer_on, args=(opened, time.monotonic() + 60)).start()
