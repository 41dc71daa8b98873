"""Checks what lessons say against fresh runs: every claim, what each cause's run draws, and whether it matches the question.

Owns the judging and the runs it needs, which go the way of every run (launcher, supervisor, record). Must not print.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lessons.claims import ClaimError, evaluate
from lessons.evidence import matches_question, silhouette_of
from lessons.evidence_columns import Summary
from lessons.experiments import in_words, named_experiments
from lessons.loader import LESSON_FILE
from lessons.model import Cause, Lesson
from scenarios.config import RunConfig
from scenarios.record import summary_of
from scenarios.runs import Runs
from scenarios.settings import Settings

POLL_S = 0.1
VIEWER = "lessons check"

Measure = Callable[[RunConfig], "Summary | str"]
"""From an experiment to the summary of a run of it, or to what became of it instead."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """One statement of a lesson, and what the run says to it."""

    lesson_id: str
    line: int | None
    scenario: str
    holds: bool
    message: str

    def __str__(self) -> str:
        place = f"{self.lesson_id}/{LESSON_FILE}" + (f":{self.line}" if self.line else "")
        return f"{place}: {self.scenario}: {self.message}"


def check_lesson(lesson: Lesson, measure: Measure) -> list[Checked]:
    """Judge every statement of `lesson`; each experiment is measured once."""
    found = {name: measure(lesson.config_of(name)) for name in named_experiments(lesson)}
    summaries = {name: result for name, result in found.items() if not isinstance(result, str)}
    checked = [
        Checked(lesson_id=lesson.id, line=None, scenario=name, holds=False, message=result)
        for name, result in found.items()
        if isinstance(result, str)
    ]
    for claim in lesson.claims:
        if claim.scenario in summaries:
            holds, message = _judge_claim(claim.expression, summaries[claim.scenario], summaries)
            checked.append(Checked(lesson_id=lesson.id, line=claim.line, scenario=claim.scenario, holds=holds, message=message))
    for cause in lesson.causes:
        if cause.scenario in summaries:
            checked += _judge_cause(lesson, cause, summaries[cause.scenario])
    return checked


def _judge_claim(expression: str, summary: Summary, others: Mapping[str, Summary]) -> tuple[bool, str]:
    try:
        judged = evaluate(expression, summary, others)
    except ClaimError as error:
        return False, str(error)
    return judged.holds is True, judged.message


def _judge_cause(lesson: Lesson, cause: Cause, summary: Summary) -> list[Checked]:
    matches, reason = matches_question(lesson, summary)
    drawn = silhouette_of(summary)
    says = f"matches_question of {cause.id} is {str(cause.matches_question).lower()}"
    measured = f"the run {'matches' if matches else 'does not match'}{f' ({reason})' if reason else ''}"
    return [
        Checked(
            lesson_id=lesson.id, line=cause.line, scenario=cause.scenario, holds=matches is cause.matches_question,
            message=f"{says}: {measured}",
        ),
        Checked(
            lesson_id=lesson.id, line=cause.line, scenario=cause.scenario, holds=drawn == cause.draws,
            message=f"draws of {cause.id} is {cause.draws}: the run draws {drawn or 'nothing that was measured'}",
        ),
    ]


def check_by_running(lessons: Sequence[Lesson], settings: Settings, tell: Callable[[str], None]) -> list[Checked]:
    """Run every experiment of `lessons` once, and judge. `tell` hears of each run."""
    with measuring(settings, tell) as measure:
        return [checked for lesson in lessons for checked in check_lesson(lesson, measure)]


@contextmanager
def measuring(settings: Settings, tell: Callable[[str], None]) -> Iterator[Measure]:
    """What measures experiments, each once, by fresh runs in a data folder of their own that goes with them."""
    with tempfile.TemporaryDirectory(prefix="shardlab-check-") as folder:
        runs = Runs(settings.model_copy(update={"data_dir": Path(folder)}))
        known: dict[str, Summary | str] = {}

        def measure(config: RunConfig) -> Summary | str:
            if config.key not in known:
                tell(f"running {in_words(config)} ...")
                known[config.key] = _run(runs, config, settings.run_limit_s)
            return known[config.key]

        try:
            yield measure
        finally:
            runs.close()


def _run(runs: Runs, config: RunConfig, limit_s: float) -> Summary | str:
    """One fresh run at full speed. Claims are about virtual GPUs: they are to hold wherever they are checked."""
    try:
        run = runs.start(config.model_copy(update={"backend": "virtual"}), viewer=VIEWER, pace="fast")
    except ValueError as error:
        return f"could not be run: {error}"
    # Twice the limit: starting the launcher comes on top of the run, and `Runs` itself ends a run that hangs.
    deadline_s = time.monotonic() + 2 * limit_s
    while not run.over and time.monotonic() < deadline_s:
        time.sleep(POLL_S)
        run = runs.get(run.run_id) or run
    summary = summary_of(run.run_dir) if run.over else None
    if summary is None:
        return f"its run ended as {run.state} without figures" if run.over else "its run did not end in time"
    return summary
