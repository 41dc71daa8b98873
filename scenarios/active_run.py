"""What the server knows of a run: a frozen view for pages and feed, and the mutable entry of one in flight.

Owns no thread, file or process.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from scenarios.config import RunConfig
from scenarios.run_folder import Entry, Pace
from scenarios.run_queue import Priority

State = Literal["queued", "starting", "running", "finished", "out_of_memory", "timeout", "failed", "stopped", "interrupted"]

IN_FLIGHT: frozenset[str] = frozenset({"queued", "starting", "running"})

SHOWN_PER_PLACE = 8
"""Computed runs still being shown at 1x, for each place for computing."""
COMPUTE_S = 6.0
"""Computing a run, as long as it has not been measured here."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run as it is now. `state` is "queued", "starting", "running" or the outcome."""

    run_id: str
    config: RunConfig
    key: str
    state: State
    created_s: float
    """Unix time of the request."""
    run_dir: Path
    pace: Pace
    place: int | None = None
    """1 for the next to start; None where it does not wait."""
    wait_s: float | None = None
    """Estimated seconds until it starts; None where it does not wait."""
    recording: str | None = None
    """While it waits: the newest good equal run."""
    recorded_s: float | None = None
    """Unix time of that recording."""
    viewers: int = 0
    hidden: bool = False
    """What runs is to be found out: nothing that is sent to a browser may come from `config`."""
    unwritten_end: dict[str, Any] | None = None
    """The `end` event's data where the disk refused it: the record on disk stops before it."""

    @property
    def over(self) -> bool:
        return self.state not in IN_FLIGHT


@dataclass(kw_only=True)
class ActiveRun:
    """A run in flight; changed under the lock of its `Runs` only. Times are time.monotonic()."""

    entry: Entry
    priority: Priority
    viewers: set[str] = field(default_factory=set)
    state: State = "queued"
    began_s: float | None = None
    """Handed to the launcher."""
    started_s: float | None = None
    """Forked."""
    pid: int | None = None
    generation: int = 0
    """Which launcher it was given to."""
    given: int = 0
    """How often it was handed to a launcher; more than once where one died before it began."""
    ending: str | None = None
    """The outcome the server has decided on, if it has."""
    killed_s: float | None = None
    stop_asked_s: float | None = None
    computed_s: float | None = None
    """Its ranks had ended; what they computed is still being shown at its own pace."""
    measuring: bool = False
    """Background measurement that nobody asked for: gives way to visitors and is tried again."""

    @property
    def live(self) -> bool:
        return self.state != "queued"

    @property
    def occupies(self) -> bool:
        """Whether it takes one of the places for computing. One that is only being shown does not."""
        return self.live and self.computed_s is None

    @property
    def gives_way(self) -> bool:
        return self.measuring and not self.viewers and self.occupies and self.ending is None


def free_places(active: Collection[ActiveRun], live_runs: int) -> int:
    """Places for computing. Runs that are only being shown cost little, but not nothing."""
    occupied = sum(each.occupies for each in active)
    return min(live_runs - occupied, live_runs * SHOWN_PER_PLACE - (sum(each.live for each in active) - occupied))


def gpus_taken(active: Collection[ActiveRun], config: RunConfig) -> bool:
    """Whether `config` has to wait for the real GPUs. They train one run at a time: two would measure each other."""
    return config.backend == "cuda" and any(each.occupies and each.entry.config.backend == "cuda" for each in active)


def expected_s(measured_s: float | None, limit_s: float) -> float:
    """Expected seconds of computing: as measured before, else a guess."""
    return min(COMPUTE_S if measured_s is None else measured_s, limit_s)


def remaining_s(active: ActiveRun, expected: float) -> float:
    """Seconds until a run that takes `expected` seconds leaves its place for computing."""
    now_s = time.monotonic()
    return 0.5 if active.gives_way or active.ending else max(0.5, expected - (now_s - (active.began_s or now_s)))


def cut_sentence(active: ActiveRun, limit_s: float) -> str | None:
    """Why the server ended it; None where it did not. `{t}` stands for the time shown so far."""
    if active.ending == "timeout":
        return f"The run took longer than {limit_s:.0f} s and was ended at {{t}}."
    if active.ending == "stopped":
        return "It gave way to a visitor's run at {t}." if active.measuring and not active.viewers else "Stopped at {t}."
    return None


def live_run(active: ActiveRun, run_dir: Path, *, place: int | None, wait_s: float | None, recording: Entry | None) -> Run:
    """The view of a run in flight."""
    entry = active.entry
    return Run(
        run_id=entry.run_id, config=entry.config, key=entry.config.key, state=active.state, created_s=entry.created_s, run_dir=run_dir,
        pace=entry.pace, place=place, wait_s=wait_s, recording=recording.run_id if recording else None,
        recorded_s=recording.created_s if recording else None, viewers=len(active.viewers), hidden=entry.hidden,
    )


def past_run(entry: Entry, run_dir: Path, unwritten_end: dict[str, Any] | None) -> Run:
    """The view of a run that is over, or that another process carries out."""
    return Run(
        run_id=entry.run_id, config=entry.config, key=entry.config.key, state=cast(State, entry.outcome or "running"),
        created_s=entry.created_s, run_dir=run_dir, pace=entry.pace, unwritten_end=unwritten_end, hidden=entry.hidden,
    )
