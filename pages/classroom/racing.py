"""The race of a class's item, as data for every screen: who is how far at which second of one clock.

Whole epochs where they were recorded, else shorter recordings with the rest reckoned. Owns which recordings count, and thinning them out
for phones. Must not start runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lessons.model import Lesson
from lessons.race import race
from scenarios.config import RunConfig
from scenarios.record import read_events, summary_of
from scenarios.runs import Runs

POINTS = 60
"""Of one racer: a second or less apart, and a kilobyte on the wire."""


def whole_epochs(lesson: Lesson) -> dict[str, RunConfig]:
    """By experiment: what has to be run for the race to be measured from start to finish."""
    return {racer.scenario: lesson.config_of(racer.scenario, {"epochs": 1, "steps": None}) for racer in lesson.race}


def unmeasured(lesson: Lesson, runs: Runs) -> list[RunConfig]:
    """Those of `whole_epochs` that were not recorded yet."""
    return [config for config in whole_epochs(lesson).values() if runs.recording(config) is None]


def racers(lesson: Lesson, runs: Runs) -> list[dict[str, Any]]:
    """One for each racer with a recording, in the lesson's order; none until the healthy script, which measures the data set, has one."""
    recordings, ids = {}, {}
    for name, config in whole_epochs(lesson).items():
        run = runs.recording(config) or runs.recording(lesson.config_of(name))
        summary = None if run is None else summary_of(run.run_dir)
        if run is not None and summary is not None:
            recordings[name] = (summary, [event["data"] for event in read_events(run.run_dir) if event["event"] == "tick"])
            ids[name] = run.run_id
    return [
        {
            "run_id": ids[racer.scenario], "title": racer.label, "role": racer.role, "epoch_s": round(racer.epoch_s, 2),
            "measured": racer.measured, "points": thinned((*racer.progress, *racer.projected[1:])),
        }
        for racer in race(lesson, recordings)
    ]


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most POINTS of them, evenly, first and last included."""
    last = len(points) - 1
    kept = range(last + 1) if last < POINTS else sorted({round(at * last / (POINTS - 1)) for at in range(POINTS)})
    return [(round(points[at][0], 2), round(points[at][1], 1)) for at in kept]
