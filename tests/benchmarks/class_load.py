"""A whole class on the real app: everybody joins, votes, votes again and watches a live run, then many more watch.

300 phones in a process of its own on the same cores open the phone page with its files at one moment, join, vote within ten seconds, vote
again, and follow a live run at five samples a second; then 700 more come and all 1,000 follow the next one. Measured are joining (from the
first request to the first view), a vote (from sending to its acknowledgement), and the plot's lag (from the line in the run's record to the
bytes in the phone). Afterwards every acknowledged vote is looked for in the store. `--drop 0.3`: that share loses the line in mid-vote and
comes back. `--kill`: the server is killed and started again in mid-vote. Compared with a Streamlit page per participant, of which joining
counts without its files, and an update of its figure by rerun.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from _common import ROOT, arguments, report  # before what imports the project, which it puts on the path

from _class_driver import ENVIRONMENT, Instructor, Phones, kept, lost_and_doubled, make_class, wait_for  # isort: skip
from _reruns import rerun_updates
from _sessions import join_together

from lessons import load_lessons
from tests.browser.server import AppServer

OPEN_FILES = 16_384
WITHIN_S = 10.0
WATCH_S = 6.0
"""How much of a run counts, once everybody follows it."""
SETTLE_S = 1.0
STARTS = 10
APP = Path(__file__).with_name("_class_app.py")
STREAMLIT = '''
import random, time
import plotly.graph_objects as go
import streamlit as st

st.subheader("One busy GPU, seven waiting")
with st.form("vote"):
    st.radio("Why?", ["A", "B", "C", "D"])
    st.form_submit_button("Vote")

@st.fragment(run_every=0.2)
def picture():
    lanes = [go.Scatter(y=[random.random() for _ in range(50)], name=f"GPU {rank}") for rank in range(8)]
    st.plotly_chart(go.Figure(lanes), key="lanes")

picture()
'''
"""What one would write without routes of one's own."""


def at(sorted_s: Sequence[float], share: float) -> float | None:
    """A percentile in milliseconds."""
    return round(1000 * sorted_s[min(len(sorted_s) - 1, int(share * len(sorted_s)))], 1) if sorted_s else None


def percentiles(name: str, seconds: Sequence[float]) -> dict[str, float | None]:
    ordered = sorted(seconds)
    return {f"{name}_p50_ms": at(ordered, 0.5), f"{name}_p99_ms": at(ordered, 0.99), f"{name}_slowest_ms": at(ordered, 1.0)}


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


class Lesson:
    """The benchmark's class from beginning to end."""

    def __init__(self, server: AppServer, phones: Phones, instructor: Instructor, code: str) -> None:
        self.server, self.phones, self.instructor, self.code = server, phones, instructor, code
        self.lesson = load_lessons().lessons[0]
        self.lost = self.doubled = 0

    @property
    def process(self) -> psutil.Process:
        assert self.server.process is not None
        return psutil.Process(self.server.process.pid)

    def join(self, count: int) -> dict[str, Any]:
        before = cpu_s(self.process)
        found = self.phones.do(do="join", count=count)
        return {
            "join_all_s": round(found["all_s"], 2), **percentiles("join", found["took_s"]), "join_kb": round(found["bytes"] / 1000, 1),
            "join_cpu_ms": round(1000 * (cpu_s(self.process) - before) / count, 2),
        }  # fmt: skip

    def vote(self, name: str, round_: str, count: int, *, drop: float, kill: bool) -> dict[str, Any]:
        """Everybody, in a round that is about to be opened; the figures of it."""
        options = [option.id for option in self.lesson.options]
        before = cpu_s(self.process)
        self.phones.begin(do="vote", round=round_, item_no=1, options=options, voters=count, within_s=WITHIN_S, drop=drop)
        self.instructor.do("next")
        down_s = self._crash() if kill else None
        found = self.phones.answer()
        lost, doubled = lost_and_doubled(found["acknowledged"], kept(self.server.data_dir, self.code, 1, round_))
        self.lost, self.doubled = self.lost + lost, self.doubled + doubled
        figures = {
            f"{name}_acknowledged": sum(choice is not None for choice in found["acknowledged"].values()),
            f"{name}_all_s": round(found["all_s"], 2), **percentiles(name, found["took_s"]),
        }  # fmt: skip
        if kill:
            return {**figures, f"{name}_server_away_s": down_s, f"{name}_sends": found["sends"], f"{name}_came_back": found["came_back"]}
        if drop:
            return {**figures, f"{name}_sends": found["sends"], f"{name}_came_back": found["came_back"]}
        return {**figures, f"{name}_cpu_ms": round(1000 * (cpu_s(self.process) - before) / count, 2)}

    def _crash(self) -> float:
        """Seconds without a server."""
        time.sleep(WITHIN_S / 2)
        self.server.kill()
        began_s = time.monotonic()
        self.server.start()
        return round(time.monotonic() - began_s, 2)

    def watch(self, name: str, cause_id: str, viewers: int) -> dict[str, Any]:
        """A live run on every phone; lag of each tick, once the run is under way."""
        self.phones.do(do="ticks")
        record, starts = self._live_run(cause_id)
        script = str(Path(__file__).with_name("_viewers.py"))
        observer = subprocess.Popen([sys.executable, script, "observe", str(record)], stdout=subprocess.PIPE)
        from_s, before = time.monotonic(), cpu_s(self.process)
        time.sleep(WATCH_S)
        until_s, spent_s = time.monotonic(), cpu_s(self.process) - before
        written = {int(number): at_s for number, at_s in json.loads(observer.communicate(timeout=90)[0]).items()}
        time.sleep(SETTLE_S)
        arrived = self.phones.do(do="ticks")
        counted = {number: at_s for number, at_s in written.items() if from_s <= at_s <= until_s}
        lags = [at_s - counted[number] for number, at_s in zip(arrived["ids"], arrived["times"], strict=True) if number in counted]
        return {
            f"{name}_phones": viewers, f"{name}_starts": starts, f"{name}_updates": len(lags),
            f"{name}_ticks_per_s": round(len(counted) / (until_s - from_s), 2), f"{name}_missed": viewers * len(counted) - len(lags),
            **percentiles(f"{name}_lag", lags),
            f"{name}_cores_used": round(spent_s / (until_s - from_s), 3), f"{name}_updates_per_cpu_s": round(len(lags) / spent_s, 1),
        }  # fmt: skip

    def _live_run(self, cause_id: str) -> tuple[Path, int]:
        """The record of a live run that draws, and how often it was asked for: one that is slow to begin is taken off the screens."""
        for starts in range(1, STARTS + 1):
            run = self.instructor.experiment(cause_id)["run"]
            record = self.server.data_dir / "runs" / str(run["run_id"]) / "events.jsonl"
            wait_for(lambda record=record: has(record, "tick") or has(record, "end"))
            time.sleep(SETTLE_S)
            if not has(record, "end"):
                return record, starts
        raise RuntimeError(f"no live run began to draw in time, {STARTS} times in a row")


def has(record: Path, event: str) -> bool:
    """Whether it stands in the record so far."""
    return record.exists() and f'"event":"{event}"' in record.read_text()


def streamlit_class(folder: Path, sessions: int) -> dict[str, float]:
    """What a Streamlit page per participant costs the server: joining without its files, and an update of a figure."""
    (folder / "page.py").write_text(STREAMLIT)
    with AppServer(folder / "data", script=folder / "page.py", ready_path="/_stcore/health") as server:
        assert server.process is not None
        process = psutil.Process(server.process.pid)
        asyncio.run(join_together(server.url, 3))  # what only the first ones pay for
        before = cpu_s(process)
        asyncio.run(join_together(server.url, sessions))
        join_ms = 1000 * (cpu_s(process) - before) / sessions
        marks: list[float] = []
        updates = asyncio.run(rerun_updates(server.url, "", 3, 8.0, mark=lambda: marks.append(cpu_s(process))))
    return {"streamlit_join_cpu_ms": round(join_ms, 1), "streamlit_updates_per_cpu_s": round(updates / (marks[1] - marks[0]), 1)}


def warm(server: AppServer) -> bool:
    """Whether a click would become a run at once."""
    return bool(json.load(urllib.request.urlopen(server.url + "/healthz"))["launcher"] == "ready")


def whole_class(lesson: Lesson, options: Any) -> dict[str, Any]:
    """Join, vote, vote again, watch, watch with many."""
    lesson.instructor.sign_in()
    figures = lesson.join(options.phones)
    figures |= lesson.vote("vote", "first", options.phones, drop=options.drop, kill=options.kill)
    for _ in ("votes", "discuss"):
        lesson.instructor.do("next")
    figures |= lesson.vote("revote", "second", options.phones, drop=0.0, kill=False)
    figures |= {"votes_lost": lesson.lost, "votes_doubled": lesson.doubled}
    if options.kill or options.drop:
        return figures
    for _ in ("predict", "experiments"):
        lesson.instructor.do("next")
    first, second, *_ = lesson.lesson.key.causes  # neither breaks off early
    figures |= lesson.watch("watch", first, options.phones)
    lesson.phones.do(do="follow", count=options.watching - options.phones)
    return figures | lesson.watch("many", second, options.watching)


def main() -> None:
    options = arguments(__doc__, phones=300, watching=1000, drop=0.0, kill=False)
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, max(OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        code = make_class(folder / "app", load_lessons().lessons[0].id).code
        with AppServer(folder / "app", script=APP, env=ENVIRONMENT, cwd=ROOT) as server:
            wait_for(lambda: warm(server))
            with Phones(server, code) as phones:
                figures = whole_class(Lesson(server, phones, Instructor(server, code), code), options)
        if not (options.drop or options.kill):
            (folder / "streamlit").mkdir()
            figures |= streamlit_class(folder / "streamlit", sessions=30)
            figures["join_ratio"] = round(figures["streamlit_join_cpu_ms"] / figures["join_cpu_ms"], 1)
            figures["updates_ratio"] = round(figures["many_updates_per_cpu_s"] / figures["streamlit_updates_per_cpu_s"], 1)
    report("class_load", {"phones": options.phones, "drop": options.drop, "kill": options.kill, **figures}, as_json=options.json)


if __name__ == "__main__":
    main()
