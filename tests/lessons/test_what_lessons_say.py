"""Every statement of every built-in lesson: claims, what a cause's run draws, and whether it matches the question.

The runs are rehearsed in this process (`tests.rehearsed`), each experiment once for all lessons; what cannot be rehearsed is really
run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lessons.check_runs import Measure, check_lesson, measuring
from lessons.evidence_columns import Summary
from lessons.experiments import named_experiments
from lessons.loader import CONTENT, read_lessons
from lessons.model import Lesson
from scenarios.config import RunConfig
from scenarios.settings import load_settings
from tests.rehearsed import REHEARSED, TRAINED, rehearsed_summary

LESSONS = {lesson.id: lesson for lesson in read_lessons(CONTENT).lessons}
WEIGHTS = "replica_checksums"

pytestmark = pytest.mark.slow


def _asks_for_weights(lesson: Lesson) -> set[str]:
    """Keys of the experiments whose weights matter."""
    if any(WEIGHTS in condition.that for condition in lesson.symptom_when):
        return {lesson.config_of(name).key for name in named_experiments(lesson)}
    claims = [claim for claim in lesson.claims if WEIGHTS in claim.expression]
    return {
        lesson.config_of(name).key
        for name in named_experiments(lesson)
        if any(name == claim.scenario or f"{name}.{WEIGHTS}" in claim.expression for claim in claims)
    }


@pytest.fixture(scope="session")
def measure() -> Iterator[Measure]:
    with_weights = set[str]().union(*map(_asks_for_weights, LESSONS.values()))
    known: dict[str, Summary | str] = {}
    with measuring(load_settings({}), print) as run:

        def summary(config: RunConfig) -> Summary | str:
            if config.key not in known:
                weights = config.key in with_weights
                possible = config.scenario in (TRAINED if weights else REHEARSED)
                known[config.key] = rehearsed_summary(config, weights=weights) if possible else run(config)
            return known[config.key]

        yield summary


@pytest.mark.parametrize("lesson_id", LESSONS)
def test_every_statement_holds(lesson_id: str, measure: Measure) -> None:
    checked = check_lesson(LESSONS[lesson_id], measure)
    assert len(checked) > len(LESSONS[lesson_id].claims)
    assert [str(one) for one in checked if not one.holds] == []


def test_a_wrong_claim_is_told_with_its_line_and_what_was_measured(measure: Measure) -> None:
    lesson = LESSONS["one-busy-gpu"]
    claim = next(claim for claim in lesson.claims if claim.scenario == "rank0_loading")
    wrong = replace(lesson, claims=(replace(claim, expression="speedup_vs_one_gpu >= 7.5"),))
    (told,) = [str(one) for one in check_lesson(wrong, measure) if not one.holds]
    assert told.startswith(f"one-busy-gpu/lesson.md:{claim.line}: rank0_loading: speedup_vs_one_gpu >= 7.5: speedup_vs_one_gpu is 2.")
