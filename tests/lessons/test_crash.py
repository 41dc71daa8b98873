"""A server that is killed while answers are being locked in: each is recorded whole or not at all, and what was acknowledged is there."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import select

from lessons import load_lessons
from lessons.attempts import AttemptStore
from lessons.store import Store
from lessons.store.tables import attempts, judgements, learners

ROOT = Path(__file__).resolve().parents[2]
THREADS = 4
ACKNOWLEDGED = 40


def test_killed_in_the_middle_of_answers(opened: Callable[..., Store], tmp_path: Path) -> None:
    store = opened()
    url = store._engine.url.render_as_string(hide_password=False) if store.dialect == "postgresql" else ""
    url = url.replace("postgresql+psycopg", "postgresql")
    command = [sys.executable, "-m", "tests.lessons.answering", str(tmp_path), url]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        told = [server.stdout.readline() for _ in range(ACKNOWLEDGED)]
        time.sleep(random.uniform(0, 0.02))
        server.kill()
        told += server.stdout.readlines()
    acknowledged = [line.split() for line in told if line.endswith("\n")]
    assert len(acknowledged) >= ACKNOWLEDGED
    lesson = load_lessons().lessons[0]
    after = AttemptStore(opened())
    for token, learner in acknowledged:
        attempt = after.get(token)
        assert attempt is not None
        assert (attempt.stage, attempt.answers, attempt.certainties) == ("predict", (lesson.options[0].id,), ("certain",))
        assert after.open(lesson, learner=learner) == attempt, "and the learner goes on with it"
    with store.read() as connection:
        kept = {row.token: row for row in connection.execute(select(attempts))}
        judged = sorted(connection.execute(select(judgements.c.ref)).scalars())
        owners = connection.execute(select(learners.c.id)).scalars().all()
    assert 0 <= len(kept) - len(acknowledged) <= THREADS, "at most what each thread was about to acknowledge"
    assert judged == sorted(kept), "each with its judgement"
    assert sorted(row.learner_id for row in kept.values()) == sorted(owners), "and its learner"
