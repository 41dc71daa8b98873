"""The evidence table of a lesson: one row per cause, filled from recordings only.

Every figure, and "matches the question?" too, is computed from a run's summary (DESIGN section 9) by the conditions of the lesson; a cause
without a recording is an empty row. Owns the table's content. Must not start runs or look for them, except `recorded`, which asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lessons.claims import evaluate
from lessons.evidence_columns import COLUMNS, Summary
from lessons.model import Cause, Lesson, Silhouette
from scenarios.config import RunConfig
from scenarios.record import summary_of

TITLE, MATCHES = "", "Matches the question?"
"""Headings of the first and the last column; what lies between is the lesson's choice."""
NOT_MEASURED = "not measured yet"

_APART_PCT = 30.0
"""GPU 0 stands out where it differs from every other GPU by as much."""
_HIGH_PCT = 60.0


@dataclass(frozen=True, kw_only=True)
class EvidenceRow:
    """What the recording of one cause says."""

    label: str
    """Letter of the option as it is shown, with a number where it stands for several causes: C1."""
    option_id: str
    cause_id: str
    title: str
    measured: bool
    cells: tuple[str, ...]
    """One text for each of the lesson's columns; none without a recording."""
    matches: bool | None
    reason: str
    """Why it does not match, in words; empty where it does."""
    draws: Silhouette | None
    source: str | None
    """`virtual` or `nvml`."""

    @property
    def head(self) -> str:
        return f"{self.label} {self.title}"

    @property
    def match(self) -> str:
        """The last cell."""
        if not self.measured:
            return NOT_MEASURED
        return {True: "yes", False: f"no: {self.reason}", None: f"cannot be told: {self.reason}"}[self.matches]


class Recordings(Protocol):
    """The part of `scenarios.runs.Runs` that is needed here."""

    def recording(self, config: RunConfig) -> Recorded | None: ...


class Recorded(Protocol):
    """A recorded run."""

    @property
    def run_dir(self) -> Path: ...


def recorded(config: RunConfig, runs: Recordings) -> Summary | None:
    """The summary of the newest good recording of a config; None where there is none."""
    run = runs.recording(config)
    return None if run is None else summary_of(run.run_dir)


def recorded_causes(lesson: Lesson, runs: Recordings) -> dict[str, Summary | None]:
    """`recorded` for every cause of the lesson, by cause id: the input of `evidence`."""
    return {cause.id: recorded(lesson.config_of(cause.scenario), runs) for cause in lesson.causes}


def labels(lesson: Lesson, order: Sequence[str] | None = None) -> dict[str, str]:
    """Cause id -> A, B, C1, C2 ... by the order in which the options are shown (default: as written)."""
    found: dict[str, str] = {}
    for number, option_id in enumerate(order or [option.id for option in lesson.options]):
        option = lesson.option(option_id)
        causes = option.causes if option else ()
        for index, cause_id in enumerate(causes, start=1):
            found[cause_id] = chr(ord("A") + number) + (str(index) if len(causes) > 1 else "")
    return found


def headings(lesson: Lesson) -> tuple[str, ...]:
    """Of all columns, the first and the last included."""
    return (TITLE, *(COLUMNS[name].heading for name in lesson.evidence), MATCHES)


def evidence(
    lesson: Lesson, summaries: Mapping[str, Summary | None], order: Sequence[str] | None = None
) -> tuple[EvidenceRow, ...]:
    """One row per cause, in the order of the labels. `summaries` maps cause id to the summary of its recording, or None."""
    rows = []
    for cause_id, label in labels(lesson, order).items():
        cause = lesson.cause(cause_id)
        if cause is not None:
            rows.append(_row(lesson, cause, label, summaries.get(cause_id)))
    return tuple(rows)


def matches_question(lesson: Lesson, summary: Summary) -> tuple[bool | None, str]:
    """Whether a run shows the symptom, and why not. None: a figure that decides it was not measured."""
    for condition in lesson.symptom_when:
        judged = evaluate(condition.that, summary)
        if judged.holds is not True:
            return judged.holds, condition.otherwise if judged.holds is False else judged.message
    return True, ""


def silhouette_of(summary: Summary) -> Silhouette | None:
    """Which of the five pictures the figures draw; None where they were not measured."""
    if summary["outcome"] == "out_of_memory":
        return "all_crash"
    utils = [gpu["gpu_util"] for gpu in summary["gpus"]]
    if not utils or any(util is None for util in utils):
        return None
    first, rest = utils[0], utils[1:]
    if rest and first - max(rest) >= _APART_PCT:
        return "only0"
    if rest and min(rest) - first >= _APART_PCT:
        return "low0"
    return "all_high" if sum(utils) / len(utils) >= _HIGH_PCT else "all_low"


def _row(lesson: Lesson, cause: Cause, label: str, summary: Summary | None) -> EvidenceRow:
    option = lesson.option_of(cause.id)
    head = {"label": label, "option_id": option.id if option else "", "cause_id": cause.id, "title": cause.title}
    if summary is None:
        return EvidenceRow(**head, measured=False, cells=(), matches=None, reason=NOT_MEASURED, draws=None, source=None)
    matches, reason = matches_question(lesson, summary)
    return EvidenceRow(
        **head, measured=True, cells=tuple(COLUMNS[name].cell(summary) for name in lesson.evidence), matches=matches, reason=reason,
        draws=silhouette_of(summary), source=summary["source"],
    )
