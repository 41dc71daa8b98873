"""Sweeps of one server: several runs that differ in one knob, carried out one after the other while nobody has to watch.

Owns the threads that ask `Runs` for them, their progress, results and limits, and what of it outlives the server. Visitors' clicks go
first: a sweep has one run under way at a time, with the priority of background work. Thread-safe; must not import torch or streamlit.
One instance per process: `get_sweeps()`.
"""

from __future__ import annotations

import atexit
import dataclasses
import json
import logging
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from scenarios.active_run import COMPUTE_S
from scenarios.backend import alike
from scenarios.config import RunConfig
from scenarios.record import end_of
from scenarios.runs import QueueFull, Run, Runs, get_runs
from scenarios.sweep_plan import SweepPlan, Value

SweepState = Literal["running", "finished", "stopped", "interrupted"]
PointState = Literal["waiting", "running", "finished", "out_of_memory", "failed"]

_LOG = logging.getLogger("shardlab")

SWEEPS_AT_ONCE = 4
"""Of all viewers together; each viewer may have one."""
SWEEPS_REMEMBERED = 100
"""In memory, and as many files on disk; the oldest are forgotten."""
LOOK_EVERY_S = 0.1
QUEUE_PATIENCE_S = 60.0
"""How long a point tries to get into a full queue."""
SWEEP_ID = re.compile(r"[0-9a-f]{24}")

RESULTS: frozenset[str] = frozenset({"finished", "out_of_memory"})
"""Out of memory is a result: it is where the edge is."""


class SweepRefused(ValueError):
    """Too many sweeps; the text is for people."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One value of the knob and what its run came to."""

    value: Value
    config: RunConfig
    state: PointState = "waiting"
    run_id: str | None = None
    recorded: bool = False
    """Read from an equal run that had been recorded before."""
    took_s: float | None = None
    """Seconds of waiting for its run."""
    summary: Mapping[str, Any] | None = None
    """As in the run's record; None where there is no result."""
    reason: str = ""
    """Why it failed; for people."""

    @property
    def has_result(self) -> bool:
        return self.state in RESULTS


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """One sweep as it is now."""

    sweep_id: str
    plan: SweepPlan
    state: SweepState
    points: tuple[Point, ...]
    left_s: float
    """Expected seconds until its end; 0 once it is over."""

    @property
    def done(self) -> int:
        """Points that need no more work: with a result, or failed."""
        return sum(point.has_result or point.state == "failed" for point in self.points)

    @property
    def under_way(self) -> Point | None:
        return next((point for point in self.points if point.state == "running"), None)

    @property
    def over(self) -> bool:
        return self.state != "running"


@dataclass(kw_only=True)
class _Active:
    """A sweep of this server; changed under the lock of its `Sweeps` only."""

    plan: SweepPlan
    points: list[Point]
    state: SweepState = "stopped"
    afresh: bool = False
    """Recordings do not count."""
    viewers: set[str] = field(default_factory=set)
    stop: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None


class Sweeps:
    """Starts, shares and stops sweeps. Every public method may be called from any thread and returns at once."""

    def __init__(self, runs: Runs, *, at_once: int = SWEEPS_AT_ONCE, queue_patience_s: float = QUEUE_PATIENCE_S) -> None:
        self._runs = runs
        self._at_once = at_once
        self._queue_patience_s = queue_patience_s
        self._folder = runs.settings.data_dir / "sweeps"
        self._lock = threading.RLock()
        self._sweeps: dict[str, _Active] = {}
        self._closed = False

    def start(self, plan: SweepPlan, *, viewer: str, afresh: bool = False) -> Sweep:
        """Carry out `plan` for `viewer`, or join the equal one. Points that have a result keep it; the others are run (`afresh`: all).

        Raises SweepRefused, with a message, where this viewer or this server has enough to do.
        """
        with self._lock:
            active = self._known(plan.key) or _Active(plan=plan, points=_fresh(plan))
            if active.state != "running":
                self._check_limits(viewer)
                self._remember(plan.key, active)
                fresh = _fresh(plan)
                active.points = fresh if afresh else [
                    old if old.has_result else new for old, new in zip(active.points, fresh, strict=True)
                ]
                active.state, active.afresh, active.stop = "running", afresh, threading.Event()
                active.viewers.clear()
                active.thread = threading.Thread(target=self._work, args=(plan.key, active, active.stop), name="sweep", daemon=True)
                active.thread.start()
            active.viewers.add(viewer)
            return self._view(plan.key, active)

    def stop(self, sweep_id: str, viewer: str) -> None:
        """`viewer` no longer wants it. It ends when the last of its viewers has said so; results so far stay."""
        with self._lock:
            active = self._sweeps.get(sweep_id)
            if active is None or active.state != "running" or viewer not in active.viewers:
                return
            active.viewers.discard(viewer)
            if not active.viewers:
                self._end(sweep_id, active, "stopped")

    def get(self, sweep_id: str) -> Sweep | None:
        """The sweep as it is now, or as an earlier server left it; None for an unknown or malformed id."""
        if not SWEEP_ID.fullmatch(sweep_id):
            return None
        with self._lock:
            active = self._known(sweep_id)
            return None if active is None else self._view(sweep_id, active)

    def of(self, viewer: str) -> Sweep | None:
        """The sweep that this viewer has under way."""
        with self._lock:
            running = ((name, active) for name, active in self._sweeps.items() if active.state == "running")
            return next((self._view(name, active) for name, active in running if viewer in active.viewers), None)

    def close(self) -> None:
        """End all sweeps and their threads; what they have found stays on disk."""
        with self._lock:
            self._closed = True
            threads = [active.thread for active in self._sweeps.values() if active.thread is not None]
            for name, active in self._sweeps.items():
                if active.state == "running":
                    self._end(name, active, "interrupted")
        for thread in threads:
            thread.join(timeout=5.0)

    # The lock is held

    def _check_limits(self, viewer: str) -> None:
        running = [active for active in self._sweeps.values() if active.state == "running"]
        if self._closed:
            raise SweepRefused("The server is being stopped.")
        if any(viewer in active.viewers for active in running):
            raise SweepRefused("You have a sweep under way already. Stop it, or let it end first.")
        if len(running) >= self._at_once:
            raise SweepRefused(f"{len(running)} sweeps are under way here already. Please try again in a minute.")

    def _known(self, sweep_id: str) -> _Active | None:
        if sweep_id not in self._sweeps:
            read = _read(self._folder / f"{sweep_id}.json")
            if read is None or read.plan.key != sweep_id:
                return None
            self._remember(sweep_id, read)
        return self._sweeps[sweep_id]

    def _remember(self, sweep_id: str, active: _Active) -> None:
        self._sweeps[sweep_id] = active
        idle = [name for name, other in self._sweeps.items() if other.state != "running" and name != sweep_id]
        for name in idle[: max(0, len(self._sweeps) - SWEEPS_REMEMBERED)]:
            del self._sweeps[name]

    def _end(self, sweep_id: str, active: _Active, state: SweepState) -> None:
        active.state = state
        active.stop.set()
        active.points = [
            dataclasses.replace(point, state="waiting", run_id=None) if point.state == "running" else point for point in active.points
        ]
        _write(self._folder, sweep_id, active)

    def _view(self, sweep_id: str, active: _Active) -> Sweep:
        taken = [point.took_s for point in active.points if point.took_s is not None]
        each_s = sum(taken) / len(taken) if taken else COMPUTE_S
        left = sum(point.state in ("waiting", "running") for point in active.points)
        return Sweep(
            sweep_id=sweep_id, plan=active.plan, state=active.state, points=tuple(active.points),
            left_s=round(left * each_s, 1) if active.state == "running" else 0.0,
        )

    # The sweep's own thread

    def _work(self, sweep_id: str, active: _Active, stop: threading.Event) -> None:
        for number, point in enumerate(list(active.points)):
            if point.has_result:
                continue
            try:
                found = self._carry_out(sweep_id, active, stop, number, point)
            except Exception:  # a thread that dies would leave its sweep under way, and its place taken, for ever
                _LOG.exception("a point of sweep %s could not be carried out", sweep_id)
                found = dataclasses.replace(point, state="failed", reason="It could not be run; the server's log says why.")
            with self._lock:
                if stop.is_set():
                    return
                active.points[number] = found
                _write(self._folder, sweep_id, active)
        with self._lock:
            if not stop.is_set():
                self._end(sweep_id, active, "finished")

    def _carry_out(self, sweep_id: str, active: _Active, stop: threading.Event, number: int, point: Point) -> Point:
        recording = None if active.afresh else self._runs.recording(point.config)
        if recording is not None:
            return _ended(dataclasses.replace(point, recorded=True), recording)
        # A name of this thread's own: when a stopped sweep is begun again at once, its old thread must not end the new one's run.
        began_s, viewer = time.monotonic(), f"sweep {sweep_id} {threading.get_ident()}"
        try:
            run = self._ask(point.config, viewer, stop)
        except QueueFull as full:
            return dataclasses.replace(point, state="failed", reason=str(full))
        if run is None:
            return point
        with self._lock:
            if not stop.is_set():
                active.points[number] = dataclasses.replace(point, state="running", run_id=run.run_id)
        now: Run | None = run
        while now is not None and not now.over:
            if stop.wait(LOOK_EVERY_S):
                self._runs.stop(run.run_id, viewer)
                return point
            now = self._runs.get(run.run_id)
        if now is None:
            return dataclasses.replace(point, state="failed", reason="Its record is gone.")
        return _ended(dataclasses.replace(point, took_s=time.monotonic() - began_s), now)

    def _ask(self, config: RunConfig, viewer: str, stop: threading.Event) -> Run | None:
        """A run of `config`, once the queue has room for it. None where the sweep was stopped meanwhile; raises QueueFull in the end."""
        deadline_s = time.monotonic() + self._queue_patience_s
        while not stop.is_set():
            try:
                return self._runs.start(config, viewer=viewer, pace="fast", priority="background")
            except QueueFull:
                if time.monotonic() > deadline_s:
                    raise
                stop.wait(LOOK_EVERY_S)
        return None


def _fresh(plan: SweepPlan) -> list[Point]:
    return [Point(value=value, config=config) for value, config in zip(plan.values, alike(plan.points), strict=True)]


def _ended(point: Point, run: Run) -> Point:
    """The point of a run that is over."""
    end = end_of(run.run_dir) or run.unwritten_end or {}
    summary = end.get("summary")
    if run.state in RESULTS and isinstance(summary, dict):
        return dataclasses.replace(point, state=_result(run.state), run_id=run.run_id, summary=summary)
    reason = str(end.get("sentence") or "It ended without a result.")
    return dataclasses.replace(point, state="failed", run_id=run.run_id, reason=reason[:300])


def _result(state: str) -> PointState:
    return "out_of_memory" if state == "out_of_memory" else "finished"


def _write(folder: Path, sweep_id: str, active: _Active) -> None:
    """For a server that comes later. A disk that refuses costs the results at the next restart, nothing now."""
    points = [
        {"state": point.state, "run_id": point.run_id, "recorded": point.recorded, "summary": point.summary}
        for point in active.points
    ]
    text = json.dumps({"plan": active.plan.dump(), "state": active.state, "points": points})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f"{sweep_id}.new"
        temporary.write_text(text)
        temporary.replace(folder / f"{sweep_id}.json")
        kept = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in kept[: max(0, len(kept) - SWEEPS_REMEMBERED)]:
            path.unlink(missing_ok=True)
    except OSError:
        pass


def _read(path: Path) -> _Active | None:
    """What an earlier server left. A sweep that it had not ended counts as interrupted."""
    try:
        data = json.loads(path.read_text())
        plan = SweepPlan.load(data["plan"])
        points = [_read_point(point, left) for point, left in zip(_fresh(plan), data["points"], strict=True)]
        state: SweepState = "finished" if data["state"] == "finished" else "stopped" if data["state"] == "stopped" else "interrupted"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return _Active(plan=plan, points=points, state=state)


def _read_point(point: Point, left: Mapping[str, Any]) -> Point:
    if left["state"] not in RESULTS or not isinstance(left["summary"], dict):
        return point
    return dataclasses.replace(
        point, state=_result(left["state"]), run_id=str(left["run_id"]), recorded=bool(left["recorded"]), summary=left["summary"]
    )


_sweeps: Sweeps | None = None
_sweeps_lock = threading.Lock()


def get_sweeps() -> Sweeps:
    """The sweeps of this process, over its `get_runs()`; made on the first call, closed when the process exits."""
    global _sweeps
    runs = get_runs()
    with _sweeps_lock:
        if _sweeps is None or _sweeps._runs is not runs:
            _sweeps = Sweeps(runs)
            atexit.register(_sweeps.close)
        return _sweeps
