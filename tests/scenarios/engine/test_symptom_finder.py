"""The symptom finder against real runs: whoever answers what a run shows is led to what is wrong in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lessons.loader import CONTENT
from lessons.symptoms import Symptoms, conflict, load_symptoms, observed, rank
from scenarios.config import RunConfig
from scenarios.record import read_events, summary_of

pytestmark = pytest.mark.slow
SHORTEST = 24
"""Steps of a run whose knobs are not the catalog's: enough for a steady part, with validation windows in it."""


def _symptoms() -> Symptoms:
    found, _ = load_symptoms(CONTENT)
    assert found is not None
    return found


SHOWN = {cause.id: cause.experiment for cause in _symptoms().causes if cause.experiment is not None}


@pytest.mark.parametrize("cause_id", SHOWN)
def test_what_a_run_shows_leads_to_its_cause(
    cause_id: str, default_run: Callable[[str], Path], run_fresh: Callable[..., Path]
) -> None:
    config = SHOWN[cause_id]
    if config == RunConfig.parse({"scenario": config.scenario}):
        folder = default_run(config.scenario)
    else:
        folder = run_fresh(**config.model_dump() | {"epochs": None, "steps": SHORTEST})
    summary = summary_of(folder)
    assert summary is not None
    answers = observed(config, summary, [event["data"] for event in read_events(folder) if event["event"] == "tick"])
    assert len(answers) >= 4
    symptoms = _symptoms()
    ranked = rank(symptoms, answers)
    assert ranked[0].cause.id == cause_id, f"{answers} leads to {[(one.cause.id, round(one.share, 2)) for one in ranked[:3]]}"
    assert [reason.question for reason in ranked[0].reasons if reason.side == "against"] == []
    assert conflict(symptoms, answers) is None
