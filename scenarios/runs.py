"""All runs of one server: who asked for what, what runs, what waits, what is on record, by other servers on the same folder too.

Owns single flight, the queue, stopping by the last viewer and the second line of the wall-clock limit. Thread-safe; must not import
torch or streamlit. One instance per process: `get_runs()`.
"""

from __future__ import annotations

import atexit
import dataclasses
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, cast

from scenarios import launcher_client
from scenarios.active_run import ActiveRun, Run, cut_sentence, expected_s, free_places, gpus_taken, live_run, past_run, remaining_s
from scenarios.backend import Choice, choose, resolved
from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.launcher_keeper import TRIES, LauncherKeeper
from scenarios.processes import step_back
from scenarios.record import COMPUTED
from scenarios.run_ends import crash_sentence, disk_sentence, wait_gone
from scenarios.run_folder import RUN_ID, Entry, Pace, RunFolder, has_begun, last_end
from scenarios.run_index import LOOK_EVERY_S, RunIndex
from scenarios.run_queue import Priority, QueueFull, RunQueue, wait_s
from scenarios.settings import Settings, load_settings

__all__ = ["QueueFull", "Run", "Runs", "get_runs"]

WATCH_EVERY_S = 0.25
RUNS_PER_VIEWER = 8
"""Runs that one viewer may have under way: enough for all experiments at once, too few to fill the queue."""
LIMIT_GRACE_S = 5.0
"""How far a run may overrun its wall-clock limit, which its supervisor enforces, before the server kills it."""
STOP_GRACE_S = 3.0
"""How long a supervisor may take to end a stopped run in good order."""
KILL_GRACE_S = 3.0
"""How long the launcher may take to report a killed run; then it hangs, and is killed too."""
RUNNING_NICE = 5
START_LIMIT_S = 120.0
"""How long a run may wait for a launcher that is still importing."""


class Runs:
    """Starts, shares, queues and ends runs. Every public method may be called from any thread."""

    def __init__(self, settings: Settings, *, launcher_command: Sequence[str] = launcher_client.COMMAND) -> None:
        self.settings = settings
        self.folder = RunFolder(settings.data_dir)
        self._lock = threading.RLock()
        self._queue = RunQueue()
        self._active: dict[str, ActiveRun] = {}
        self._in_flight: dict[str, str] = {}
        self._computing_s: dict[str, float] = {}
        self._to_measure: deque[RunConfig] = deque()
        self._index = RunIndex(
            self.folder, keep=settings.runs_kept, default_keys={RunConfig.parse({"scenario": name}).key for name in SCENARIOS}
        )
        self._closed = threading.Event()
        with suppress(OSError):  # full or read-only: each run will say so
            self.folder.claim(collecting=bool(settings.collect_token))
        self._index.adopt()
        self._launcher = LauncherKeeper(
            settings, command=launcher_command, log=settings.data_dir / "launcher.log",
            on_message=self._heard, on_death=self._launcher_died,
        )
        self._launcher.ensure()
        threading.Thread(target=self._watch, name="run watchdog", daemon=True).start()

    # What pages and feed ask for

    def start(
        self, config: RunConfig, *, viewer: str, pace: Pace = "live", priority: Priority = "visitor", hidden: bool = False,
        choice: Choice | None = None,
    ) -> Run:
        """Run `config` for `viewer` (any token; "" for nobody): a new run, or the equal one that is in flight.

        `hidden`: what runs is to be found out; it is shared with nobody, and virtual, as what it was drawn by. `choice`: as made before.
        One that cannot be recorded comes back as failed, with the reason. Raises ValueError where `choose` does; QueueFull, with a message.
        """
        choice = Choice(config=config, reason="") if hidden else choice or choose(config)
        with self._lock:
            self._launcher.ensure()
            active = None if hidden else self._joinable(choice.config, pace)
            if active is None:
                if viewer and sum(viewer in active.viewers for active in self._active.values()) >= RUNS_PER_VIEWER:
                    raise QueueFull(f"You have {RUNS_PER_VIEWER} runs under way already. Please let one end first.")
                if len(self._queue) >= self.settings.queue_limit:
                    raise QueueFull(f"{len(self._queue)} runs are waiting already. Please try again in a minute.")
                entry = self.folder.new_entry(choice.config, pace, hidden=hidden, backend_reason=choice.reason)
                try:
                    self.folder.create(entry)
                except OSError as error:
                    self._index.refuse(entry, error)
                    return self._past_view(dataclasses.replace(entry, outcome="failed"))
                active = self._enter(entry, priority)
                self._queue.add(entry.run_id, priority)
            if viewer:
                active.viewers.add(viewer)
            if priority == "visitor":
                self._promote(active, pace)
            run_id = active.entry.run_id
            self._dispatch()
            return self._view(active) if run_id in self._active else self._past_view(cast(Entry, self._index.get(run_id)))

    def stop(self, run_id: str, viewer: str) -> None:
        """`viewer` no longer wants it. The run ends when the last of its viewers has said so."""
        with self._lock:
            active = self._active.get(run_id)
            if active is None or viewer not in active.viewers:
                return
            active.viewers.discard(viewer)
            if active.viewers or active.ending:
                return
            active.ending = "stopped"
            if self._queue.remove(run_id):
                self._conclude(active, "stopped", "Stopped before it began.")
            else:
                active.stop_asked_s = time.monotonic()
                self._launcher.send({"stop": run_id})

    def get(self, run_id: str, *, hidden: bool = False) -> Run | None:
        """The run as it is now; None for an unknown or malformed id, and for a hidden run unless `hidden` ones are asked for."""
        if not RUN_ID.fullmatch(run_id):
            return None
        with self._lock:
            active = self._active.get(run_id)
            entry = active.entry if active else self._index.get(run_id) or self.folder.read(run_id)
            if entry is None or (entry.hidden and not hidden):
                return None
            return self._view(active) if active else self._past_view(entry)

    def reveal(self, run_id: str) -> None:
        """What runs under this id is no longer to be found out."""
        with self._lock:
            active = self._active.get(run_id)
            if active is None:
                self._index.reveal(run_id)
            else:
                active.entry = self.folder.reveal(active.entry)

    def recording(self, config: RunConfig) -> Run | None:
        """The newest equal run that ended as it should; never one that failed or was cut off."""
        key = resolved(config).key  # before the lock: the driver may have to be asked
        with self._lock:
            entry = self._index.best(key)
            return None if entry is None else self._past_view(entry)

    def note(self, entry: Entry) -> None:
        """A run that somebody else carried out is over: it counts among the records."""
        with self._lock:
            self._index.add(entry)

    def measure_in_background(self, configs: Iterable[RunConfig]) -> None:
        """Record each of `configs` once per data folder, while nobody waits, and keep it. A visitor's run pushes it aside."""
        configs = [resolved(config) for config in configs]
        with self._lock:
            self._to_measure.extend(config for config in configs if config not in self._to_measure)
            self._index.spare(config.key for config in self._to_measure)
            self._dispatch()

    def health(self) -> dict[str, Any]:
        """For /healthz."""
        with self._lock:
            broken, writable = self._launcher.broken, self.folder.writable()
            return {
                "status": "degraded" if broken or not writable else "ok",
                "records": "writable" if writable else "not writable",
                "launcher": "broken" if broken else "ready" if self._launcher.ready else "starting",
                "live": sum(active.live for active in self._active.values()),
                "queued": len(self._queue),
            }

    @property
    def launcher_pid(self) -> int | None:
        return self._launcher.pid

    def close(self) -> None:
        """End every run and the launcher; what was in flight is marked as interrupted."""
        with self._lock:
            if self._closed.is_set():
                return
            self._closed.set()
        self._launcher.close()
        with self._lock:
            for active in list(self._active.values()):
                self._conclude(active, "interrupted", (
                    "The server was stopped at {t}; shown up to there." if active.live else "The server was stopped before this run began."
                ))
            self.folder.release()

    # Single flight and queue; the lock is held

    def _joinable(self, config: RunConfig, pace: Pace) -> ActiveRun | None:
        """The equal run in flight. A measurement at full speed is no live run to watch: it makes room for one."""
        active = self._active.get(self._in_flight.get(config.key, ""))
        if active is None or active.ending:
            return None
        if active.gives_way and pace != active.entry.pace:
            self._push_aside(active)
            return None
        return active

    def _enter(self, entry: Entry, priority: Priority, *, measuring: bool = False) -> ActiveRun:
        active = ActiveRun(entry=entry, priority=priority, measuring=measuring)
        self._active[entry.run_id] = active
        if not entry.hidden:
            self._in_flight[entry.config.key] = entry.run_id
        return active

    def _promote(self, active: ActiveRun, pace: Pace) -> None:
        active.priority = "visitor"
        if not active.live:
            self._queue.promote(active.entry.run_id)
            if pace == "live":
                active.entry = dataclasses.replace(active.entry, pace="live")

    def _dispatch(self) -> None:
        """Fill the free places: visitors, then background requests, then measurements."""
        if self._closed.is_set():
            return
        if self._launcher.broken:
            while (run_id := self._queue.pop()) is not None:
                self._conclude(self._active[run_id], "failed", self._launcher.broken)
            return
        while free_places(self._active.values(), self.settings.live_runs) > 0:
            run_id = self._queue.pop(self._may_start) or self._next_measurement()
            if run_id is None:
                break
            self._launch(self._active[run_id])
        leaving = sum(active.occupies and active.ending is not None for active in self._active.values())
        giving_way = [active for active in self._active.values() if active.gives_way]
        for active in giving_way[: max(0, self._queue.visitors() - leaving)]:
            self._push_aside(active)

    def _may_start(self, run_id: str) -> bool:
        return not gpus_taken(self._active.values(), self._active[run_id].entry.config)

    def _next_measurement(self) -> str | None:
        while self._to_measure and self._launcher.ready:
            if gpus_taken(self._active.values(), self._to_measure[0]):
                return None
            config = self._to_measure.popleft()
            if self._index.best(config.key) or config.key in self._in_flight:
                continue
            entry = self.folder.new_entry(config, "fast")
            try:
                self.folder.create(entry)
            except OSError:
                return None
            self._enter(entry, "background", measuring=True)
            return entry.run_id
        return None

    def _push_aside(self, active: ActiveRun) -> None:
        active.ending = "stopped"
        active.killed_s = time.monotonic()
        self._to_measure.appendleft(active.entry.config)
        self._launcher.send({"kill": active.entry.run_id})

    def _launch(self, active: ActiveRun) -> None:
        entry = active.entry
        try:
            self.folder.write_config(entry)
        except OSError as error:
            self._conclude(active, "failed", disk_sentence(error), str(error))
            return
        active.state = "starting"
        active.began_s = time.monotonic()
        active.given += 1
        active.generation = self._launcher.send(
            {"start": entry.run_id, "run_dir": str(self.folder.path(entry.run_id).resolve()), "pace": entry.pace}
        )

    # What the launcher says; from its reader's thread

    def _heard(self, message: dict[str, Any]) -> None:
        with self._lock:
            active = self._active.get(message.get("started") or message.get("ended") or "")
            if active is not None and "started" in message:
                active.pid, active.started_s = message["pid"], time.monotonic()
            elif active is not None:
                self._ended(active, int(message["status"]), message.get("error"))
            self._dispatch()

    def _launcher_died(self, generation: int, text: str) -> None:
        """Its runs died with it. Those it had not begun are given to the next launcher, if there is one."""
        with self._lock:
            theirs = [active for active in self._active.values() if active.live and active.generation == generation]
            for active in theirs:
                if active.pid is not None:
                    wait_gone(active.pid, 2.0)
                if active.pid is None and active.given < TRIES and not active.ending and not self._launcher.broken:
                    self._launch(active)
                elif last_end(self.folder.path(active.entry.run_id)):
                    self._ended(active, 0, None)
                else:
                    broke_off = f"{text} The run broke off at {{t}}." if active.pid else self._launcher.broken or text
                    sentence = cut_sentence(active, self.settings.run_limit_s) or broke_off
                    self._conclude(active, active.ending or "failed", sentence, text)
            self._dispatch()

    # Ends; the lock is held

    def _ended(self, active: ActiveRun, status: int, error: str | None) -> None:
        """Its processes are gone. Most runs have written their end themselves."""
        end = last_end(self.folder.path(active.entry.run_id))
        if end is None:
            sentence, text = crash_sentence(self.folder.path(active.entry.run_id), status, error)
            sentence = cut_sentence(active, self.settings.run_limit_s) or sentence
            self._conclude(active, active.ending or "failed", sentence, None if active.ending else text)
            return
        if (end["outcome"] in ("finished", "out_of_memory") or end.get("expected")) and active.started_s is not None:
            self._computing_s[active.entry.config.key] = (active.computed_s or time.monotonic()) - active.started_s
        self._leave(active, dataclasses.replace(active.entry, outcome=str(end["outcome"]), expected=bool(end.get("expected"))))

    def _conclude(self, active: ActiveRun, outcome: str, sentence: str, error: str | None = None) -> None:
        self._leave(active, self._index.conclude(active.entry, outcome, sentence, error=error))

    def _leave(self, active: ActiveRun, entry: Entry) -> None:
        self._active.pop(entry.run_id, None)
        if self._in_flight.get(entry.config.key) == entry.run_id:
            del self._in_flight[entry.config.key]
        self._index.add(entry)

    def _watch(self) -> None:
        """The second line of every limit: supervisors and the launcher enforce their own."""
        turns = 0
        while not self._closed.wait(WATCH_EVERY_S):
            turns += 1
            with self._lock:
                live = [active for active in self._active.values() if active.live]
                for active in live:
                    self._note_start(active)
                    if active.computed_s is None and (self.folder.path(active.entry.run_id) / COMPUTED).exists():
                        active.computed_s = time.monotonic()
                if any(self._check(active, time.monotonic()) for active in live):
                    self._launcher.kill()
                self._dispatch()
            if turns % round(LOOK_EVERY_S / WATCH_EVERY_S) == 0:
                self._index.look_around(self._lock, self._active)

    def _note_start(self, active: ActiveRun) -> None:
        """Once it trains, it comes after the web server: virtual time does not mind waiting, viewers would."""
        if active.state == "starting" and active.pid is not None and has_begun(self.folder.path(active.entry.run_id)):
            active.state = "running"
            step_back(active.pid, RUNNING_NICE)

    def _check(self, active: ActiveRun, now_s: float) -> bool:
        """Enforce the limits of one live run; True when the launcher does not do as it is told."""
        if active.killed_s is not None:
            return now_s - active.killed_s > KILL_GRACE_S and active.pid is not None
        if active.started_s is None:
            return now_s - (active.began_s or now_s) > START_LIMIT_S
        overdue = now_s - active.started_s > self.settings.run_limit_s + LIMIT_GRACE_S
        if overdue or (active.stop_asked_s is not None and now_s - active.stop_asked_s > STOP_GRACE_S):
            active.ending = active.ending or "timeout"
            active.killed_s = now_s
            self._launcher.send({"kill": active.entry.run_id})
        return False

    # Views; the lock is held

    def _view(self, active: ActiveRun) -> Run:
        self._note_start(active)
        entry = active.entry
        place = self._queue.place(entry.run_id)
        return live_run(
            active, self.folder.path(entry.run_id), place=place, wait_s=None if place is None else self._wait_s(place),
            recording=None if entry.hidden else self._index.best(entry.config.key),
        )

    def _past_view(self, entry: Entry) -> Run:
        return past_run(entry, self.folder.path(entry.run_id), self._index.unwritten_end(entry.run_id))

    def _wait_s(self, place: int) -> float:
        left_s = [remaining_s(active, self._expected_s(active)) for active in self._active.values() if active.occupies]
        ahead_s = [self._expected_s(self._active[run_id]) for run_id in self._queue]
        return round(wait_s(place, slots=self.settings.live_runs, remaining_s=left_s, ahead_s=lambda n: ahead_s[n - 1]), 1)

    def _expected_s(self, active: ActiveRun) -> float:
        return expected_s(self._computing_s.get(active.entry.config.key), self.settings.run_limit_s)


_runs: Runs | None = None
_runs_lock = threading.Lock()


def get_runs() -> Runs:
    """The runs of this process, with the settings of its environment; made on the first call, closed when the process exits."""
    global _runs
    with _runs_lock:
        if _runs is None:
            _runs = Runs(load_settings())
            atexit.register(_runs.close)
        return _runs
