"""Answers: many learners lock one in within ten seconds, on the real app, each over a websocket of its own as a browser has.

Every learner opens the lesson's page under a cookie of its own and waits until it is drawn; then each chooses an option and a certainty
and presses the button, at a random moment within `--seconds`. Measured is the time from the press to the page that says that the answer
is locked in, which the server draws after its transaction has been committed. Afterwards the answers in the store are counted. The
clients run on the same cores.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from pathlib import Path

import psutil
from _common import arguments, report  # before what imports the project, which it puts on the path

from _answering import Learner  # isort: skip
from sqlalchemy import func, select

from lessons import load_lessons
from lessons.learners import new_token
from lessons.store import open_store
from lessons.store.tables import attempts, judgements
from tests.browser.server import AppServer

JOINING = 8
"""Pages opened at the same time while the room fills; what that costs is another benchmark."""
LIMIT_S = 60.0


async def answer_all(url: str, server: psutil.Process, count: int, seconds: float) -> tuple[list[float], float, float]:
    """(seconds of each acknowledged answer, seconds to the last acknowledgement, CPU seconds of the web server meanwhile)."""
    gate = asyncio.Semaphore(JOINING)
    lesson = load_lessons().lessons[0]
    learners = [Learner(url, new_token(), lesson.id) for _ in range(count)]

    async def join(learner: Learner) -> None:
        async with gate:
            await learner.join()

    await asyncio.gather(*(join(learner) for learner in learners))
    began_s, before = time.perf_counter(), server.cpu_times()

    async def answer(learner: Learner) -> float | None:
        await asyncio.sleep(random.uniform(0, seconds))
        started_s = time.perf_counter()
        try:
            async with asyncio.timeout(LIMIT_S):
                await learner.lock_in()
        except TimeoutError:
            return None
        return time.perf_counter() - started_s

    told = await asyncio.gather(*(answer(learner) for learner in learners))
    took_s, after = time.perf_counter() - began_s, server.cpu_times()
    await asyncio.gather(*(learner.close() for learner in learners))
    cpu_s = after.user + after.system - before.user - before.system
    return sorted(each for each in told if each is not None), took_s, cpu_s


def main() -> None:
    options = arguments(__doc__, learners=300, seconds=10)
    with tempfile.TemporaryDirectory() as name:
        with AppServer(Path(name)) as server:
            assert server.process is not None
            process = psutil.Process(server.process.pid)
            latencies_s, took_s, cpu_s = asyncio.run(answer_all(server.url, process, options.learners, options.seconds))
        store = open_store(Path(name))
        with store.read() as connection:
            recorded = connection.execute(select(func.count()).select_from(attempts).where(attempts.c.stage == "predict")).scalar_one()
            judged = connection.execute(select(func.count()).select_from(judgements)).scalar_one()
        store.close()
    figures = {
        "learners": options.learners, "within_s": options.seconds, "acknowledged": len(latencies_s),
        "recorded": recorded, "judged": judged, "took_s": round(took_s, 2),
        "server_cpu_ms": round(1000 * cpu_s / options.learners, 1),
        "p50_ms": round(1000 * latencies_s[len(latencies_s) // 2]), "p99_ms": round(1000 * latencies_s[int(0.99 * (len(latencies_s) - 1))]),
        "slowest_ms": round(1000 * latencies_s[-1]),
    }
    report("answers", figures, as_json=options.json)


if __name__ == "__main__":
    main()
