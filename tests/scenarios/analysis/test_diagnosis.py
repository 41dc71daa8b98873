"""Every experiment of the catalog is told by its figures alone, on three kinds of GPU; so are the causes that knobs make.

Twenty seeds of each are tests/benchmarks/diagnosis.py's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scenarios.analysis.diagnosis import SURE, Diagnosis, diagnose, diagnose_run
from scenarios.record import head_of, samples_of
from tests.scenarios.conftest import RunFresh

KINDS = ("a100-80gb", "h100-80gb", "v100-32gb")
OWN_CAUSE = {
    "sharded": "healthy", "unsharded": "not_sharded", "rank0_loading": "rank0_feeds", "large_batch": "batch_too_large",
    "scheduler_desync": "schedulers_out_of_step", "tiny_model": "launch_bound",
}
"""On three kinds of GPU."""
CAUSE_OF_DEFAULT = {
    "starved_loader": "input_bound", "no_set_epoch": "same_order", "rank0_validation": "one_rank_validates",
    "rank0_checkpoint": "one_rank_checkpoints", "lopsided_shards": "uneven_work",
}
"""At the default knobs, which other tests have run already."""
KNOBS_OF: dict[str, dict[str, Any]] = {"tiny_model": {"steps": 28}, "large_batch": {"steps": 80, "batch": 1024}}
"""A few sample periods of the one, and fewer doublings of the other: the benchmark has its default."""


def told_alone(run_dir: Path) -> Any:
    """From the samples alone."""
    return diagnose(samples_of(run_dir), (), head_of(run_dir))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", OWN_CAUSE)
@pytest.mark.parametrize("kind", KINDS)
def test_each_experiment_is_diagnosed_as_itself(scenario: str, kind: str, run_fresh: RunFresh) -> None:
    seed = KINDS.index(kind) + 3 * list(OWN_CAUSE).index(scenario)
    run_dir = run_fresh(scenario=scenario, gpu=kind, seed=seed, **{"steps": 16} | KNOBS_OF.get(scenario, {}))
    for diagnosis in (diagnose_run(run_dir), told_alone(run_dir)):
        found_alone(diagnosis, OWN_CAUSE[scenario], least=0.8)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", CAUSE_OF_DEFAULT)
def test_each_default_run_is_diagnosed_as_itself(scenario: str, default_run: Callable[[str], Path]) -> None:
    found_alone(diagnose_run(default_run(scenario)), CAUSE_OF_DEFAULT[scenario], least=0.9)
    found_alone(told_alone(default_run(scenario)), CAUSE_OF_DEFAULT[scenario], least=SURE)


def found_alone(diagnosis: Diagnosis, cause: str, *, least: float) -> None:
    assert diagnosis.enough
    first, *others = diagnosis.findings
    assert first.cause == cause
    assert first.confidence >= least
    assert all(finding.confidence < SURE for finding in others)
    assert all(any(letter.isdigit() for letter in sentence) for sentence in first.evidence[:1])


KNOBS: dict[str, tuple[dict[str, Any], str, int | None]] = {
    "hand-off over NCCL": ({"scenario": "rank0_loading", "hand_off": "nccl"}, "rank0_feeds", 0),
    "decoding on the CPU": ({"scenario": "sharded", "preprocess": "cpu", "steps": 24}, "input_bound", None),
    "a wide model over PCIe": ({"scenario": "sharded", "model": "mlp_wide", "link": "pcie4", "steps": 20}, "communication_bound", None),
    "one slow GPU": ({"scenario": "sharded", "straggler": 3, "straggler_pct": 30}, "straggler", 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("knob", KNOBS)
def test_what_a_knob_makes_is_diagnosed(knob: str, run_fresh: RunFresh) -> None:
    config, cause, rank = KNOBS[knob]
    run_dir = run_fresh(**{"steps": 12} | config)
    first = diagnose_run(run_dir).findings[0]
    assert (first.cause, first.rank) == (cause, rank)
    assert first.confidence >= 0.85
    alone = told_alone(run_dir).findings[0]
    assert alone.cause == cause
    assert 0.5 <= alone.confidence < first.confidence


@pytest.mark.slow
def test_a_rank_that_feeds_all_and_is_starved_itself(run_fresh: RunFresh) -> None:
    diagnosis = diagnose_run(run_fresh(scenario="rank0_loading", preprocess="cpu", steps=8))
    assert {finding.cause for finding in diagnosis.findings if finding.confidence >= SURE} == {"rank0_feeds", "input_bound"}


@pytest.mark.slow
def test_two_faults_at_once_are_both_found(run_fresh: RunFresh) -> None:
    diagnosis = diagnose_run(run_fresh(scenario="unsharded", straggler=5, straggler_pct=40, steps=12))
    assert {(finding.cause, finding.rank) for finding in diagnosis.findings if finding.confidence >= SURE} == {
        ("not_sharded", None), ("straggler", 5),
    }  # fmt: skip
