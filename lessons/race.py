"""The race of a lesson: several recorded runs on one virtual clock, by useful progress.

Useful progress is the share of the data set that has been trained on at least once, in percent: distinct samples / samples of the data set.
A run that trains each sample eight times gets through its loader as fast as the others and is still last. Owns this definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lessons.evidence import Recordings
from lessons.evidence_columns import Summary
from lessons.model import Lesson
from scenarios.catalog import SCENARIOS
from scenarios.record import read_events, summary_of

Role = Literal["odd", "rest", "right"]
Tick = Mapping[str, Any]
"""The data of a `tick` event."""


@dataclass(frozen=True, kw_only=True)
class RacerProgress:
    """One lane of the race."""

    label: str
    scenario: str
    role: Role
    """right: the healthy script; odd: the cause that matches the question; rest: any other."""
    progress: tuple[tuple[float, float], ...]
    """(virtual seconds, percent of the data set trained on), in order, up to 100 or to where the recording ends."""
    epoch_s: float
    """When the first epoch is done; extrapolated from the rate where `measured` is False."""
    measured: bool

    @property
    def projected(self) -> tuple[tuple[float, float], ...]:
        """From the end of the recording to the finish, at the same rate; empty where the finish was recorded."""
        return () if self.measured or not self.progress else (self.progress[-1], (self.epoch_s, 100.0))


def recorded_ticks(lesson: Lesson, runs: Recordings) -> dict[str, tuple[Summary, list[Tick]]]:
    """Summary and ticks of the newest good recording of every racer that has one: the input of `race`."""
    found: dict[str, tuple[Summary, list[Tick]]] = {}
    for racer in lesson.race:
        run = runs.recording(lesson.config_of(racer.scenario))
        summary = None if run is None else summary_of(run.run_dir)
        if run is not None and summary is not None:
            ticks = [event["data"] for event in read_events(run.run_dir) if event["event"] == "tick"]
            found[racer.scenario] = (summary, ticks)
    return found


def race(lesson: Lesson, recordings: Mapping[str, tuple[Summary, Iterable[Tick]]]) -> tuple[RacerProgress, ...]:
    """The racers of the lesson that have a finished recording, in its order. Empty until the healthy run is recorded too:

    its epoch covers the data set exactly once, and so measures the size of it.
    """
    healthy = recordings.get(lesson.fix)
    if healthy is None:
        return ()
    matching = {cause.scenario for cause in lesson.causes if cause.matches_question}
    racers = []
    for racer in lesson.race:
        summary, ticks = recordings.get(racer.scenario, (None, ()))
        if summary is None or summary["epoch_seconds"] is None or summary["unique_fraction"] is None:
            continue
        role: Role = "right" if racer.scenario == lesson.fix else "odd" if racer.scenario in matching else "rest"
        racers.append(
            RacerProgress(
                label=racer.label, scenario=racer.scenario, role=role, epoch_s=summary["epoch_seconds"], measured=summary["epoch_measured"],
                progress=_progress(_pass(lesson, racer.scenario, summary) / _pass(lesson, lesson.fix, healthy[0]), summary, ticks),
            )
        )
    return tuple(racers)


def _pass(lesson: Lesson, name: str, summary: Summary) -> int:
    """Samples that one pass of a run's loaders processes: batches x GPUs x samples of one. The healthy run's is the data set once.

    Where several batches make a step, the last step of a pass may have fewer: how many, its rate tells.
    """
    config = lesson.config_of(name)
    steps, together = int(summary["steps_per_epoch"]), SCENARIOS[config.scenario].micro_batches
    at_once = len(summary["gpus"]) * config.batch
    if together == 1:
        return steps * at_once
    batches = round(float(summary["samples_per_second"]) * float(summary["epoch_seconds"]) / at_once)
    return min(max(batches, (steps - 1) * together + 1), steps * together) * at_once


def _progress(passes: float, summary: Summary, ticks: Iterable[Tick]) -> tuple[tuple[float, float], ...]:
    """Distinct samples over the samples of the data set, tick by tick; `passes` are those of the data set in one pass of the loaders."""
    points = [(0.0, 0.0)]
    for tick in ticks:
        loaded = tick["epoch"] + tick["epoch_pct"] / 100.0
        pct = 100.0 * loaded * passes * summary["unique_fraction"]
        if pct >= 100.0:
            break
        if tick["t_ms"] / 1000.0 < summary["epoch_seconds"]:
            points.append((tick["t_ms"] / 1000.0, round(pct, 3)))
    if summary["epoch_measured"]:
        points.append((summary["epoch_seconds"], 100.0))
    return tuple(points)
