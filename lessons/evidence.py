"""The evidence table of a lesson: one row per cause, filled from recordings only.

Every figure, and "matches the question?" too, is computed from a run's summary (DESIGN section 9) by the conditions of the lesson; a cause
without a recording is an empty row. Owns the table's content. Must not start runs or look for them, except `recorded`, which asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lessons.claims import evaluate
from lessons.model import Cause, Lesson, Silhouette
from scenarios.config import RunConfig
from scenarios.record import summary_of

Summary = Mapping[str, Any]

COLUMNS = ("", "GPU 0", "GPUs 1-7", "Memory", "Ended", "Weights agree", "Useful speed", "Matches the question?")
NOT_MEASURED = "not measured yet"
MISSING = "–"

_ENDED = {
    "finished": "finished", "out_of_memory": "out of memory", "timeout": "timed out", "failed": "failed", "stopped": "stopped",
    "interrupted": "interrupted",
}
_APART_PCT = 30.0
"""GPU 0 stands out where it differs from every other GPU by as much."""
_HIGH_PCT = 60.0


@dataclass(frozen=True, kw_only=True)
class EvidenceRow:
    """What the recording of one cause says. None: not measured (the run had no steady part, or there is no recording)."""

    label: str
    """Letter of the option as it is shown, with a number where it stands for several causes: C1."""
    option_id: str
    cause_id: str
    title: str
    measured: bool
    gpu0_pct: float | None
    others_pct: tuple[float, float] | None
    """Lowest and highest of the other GPUs."""
    memory_gib: float | None
    memory_limit_gib: float | None
    ended: str | None
    weights_agree: bool | None
    useful_speed: float | None
    """Times that of one GPU."""
    matches: bool | None
    reason: str
    """Why it does not match, in words; empty where it does."""
    draws: Silhouette | None
    source: str | None
    """`virtual` or `nvml`."""

    @property
    def texts(self) -> tuple[str, ...]:
        """One text for each of COLUMNS."""
        if not self.measured:
            return (f"{self.label} {self.title}", *[NOT_MEASURED] * (len(COLUMNS) - 1))
        matches = {True: "yes", False: f"no: {self.reason}", None: f"cannot be told: {self.reason}"}[self.matches]
        return (
            f"{self.label} {self.title}", _pct(self.gpu0_pct), _range(self.others_pct), _memory(self.memory_gib, self.memory_limit_gib),
            self.ended or MISSING, {True: "yes", False: "no", None: MISSING}[self.weights_agree],
            MISSING if self.useful_speed is None else f"{self.useful_speed:.1f}x one GPU", matches,
        )


class Recordings(Protocol):
    """The part of `scenarios.runs.Runs` that is needed here."""

    def recording(self, config: RunConfig) -> Recorded | None: ...


class Recorded(Protocol):
    """A recorded run."""

    @property
    def run_dir(self) -> Path: ...


def default_config(scenario: str) -> RunConfig:
    """The configuration whose recordings fill the table: the experiment with its defaults."""
    return RunConfig.parse({"scenario": scenario})


def recorded(scenario: str, runs: Recordings) -> Summary | None:
    """The summary of the newest good recording of an experiment at its defaults; None where there is none."""
    run = runs.recording(default_config(scenario))
    return None if run is None else summary_of(run.run_dir)


def recorded_causes(lesson: Lesson, runs: Recordings) -> dict[str, Summary | None]:
    """`recorded` for every cause of the lesson, by cause id: the input of `evidence`."""
    return {cause.id: recorded(cause.scenario, runs) for cause in lesson.causes}


def experiments(lesson: Lesson) -> tuple[str, ...]:
    """Every experiment the lesson shows: those of its causes, the fix and the race, each once."""
    names = [*(cause.scenario for cause in lesson.causes), lesson.fix, *(racer.scenario for racer in lesson.race)]
    return tuple(dict.fromkeys(names))


def labels(lesson: Lesson, order: Sequence[str] | None = None) -> dict[str, str]:
    """Cause id -> A, B, C1, C2 ... by the order in which the options are shown (default: as written)."""
    found: dict[str, str] = {}
    for number, option_id in enumerate(order or [option.id for option in lesson.options]):
        option = lesson.option(option_id)
        causes = option.causes if option else ()
        for index, cause_id in enumerate(causes, start=1):
            found[cause_id] = chr(ord("A") + number) + (str(index) if len(causes) > 1 else "")
    return found


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
        return EvidenceRow(
            **head, measured=False, gpu0_pct=None, others_pct=None, memory_gib=None, memory_limit_gib=None, ended=None,
            weights_agree=None, useful_speed=None, matches=None, reason=NOT_MEASURED, draws=None, source=None,
        )
    utils = [gpu["gpu_util"] for gpu in summary["gpus"]]
    others = [util for util in utils[1:] if util is not None]
    matches, reason = matches_question(lesson, summary)
    return EvidenceRow(
        **head, measured=True, gpu0_pct=utils[0] if utils else None, others_pct=(min(others), max(others)) if others else None,
        memory_gib=summary["peak_memory_gib"], memory_limit_gib=summary["memory_limit_gib"],
        ended=_ended(summary), weights_agree=_agree(summary["replica_checksums"]), useful_speed=summary["speedup_vs_one_gpu"],
        matches=matches, reason=reason, draws=silhouette_of(summary), source=summary["source"],
    )


def _ended(summary: Summary) -> str:
    outcome = _ENDED.get(summary["outcome"], str(summary["outcome"]))
    return outcome if summary["outcome"] == "finished" else f"{outcome} at {summary['virtual_s']:.1f} s"


def _agree(checksums: Sequence[str | None]) -> bool | None:
    if not checksums or any(checksum is None for checksum in checksums):
        return None
    return len(set(checksums)) == 1


def _pct(value: float | None) -> str:
    return MISSING if value is None else f"{value:.0f} %"


def _range(values: tuple[float, float] | None) -> str:
    if values is None:
        return MISSING
    low, high = (f"{value:.0f}" for value in values)
    return f"{low} %" if low == high else f"{low} to {high} %"


def _memory(used_gib: float | None, limit_gib: float | None) -> str:
    if used_gib is None:
        return MISSING
    return f"{used_gib:.0f} GiB" if limit_gib is None else f"{used_gib:.0f} of {limit_gib:.0f} GiB"
