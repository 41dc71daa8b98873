"""Diagnosis: each experiment on three kinds of GPU and twenty seeds, told from its samples and spans, and from its samples alone.

`right` is its own cause in the first place; `wrong_with_high_confidence` another first with 0.6 or more. Thresholds have room where the
lowest confidence of a right answer and the highest of a wrong cause stay away from 0.6.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from statistics import median
from typing import Any

from _common import arguments, report
from _runs import over, warm_runs

from scenarios.analysis.diagnosis import SURE, Diagnosis, diagnose
from scenarios.config import RunConfig
from scenarios.record import head_of, samples_of, spans_of

KINDS = ("a100-80gb", "h100-80gb", "v100-32gb")

OWN_CAUSE = {
    "sharded": "healthy", "unsharded": "not_sharded", "rank0_loading": "rank0_feeds", "large_batch": "batch_too_large",
    "scheduler_desync": "schedulers_out_of_step", "tiny_model": "launch_bound",
    "starved_loader": "input_bound", "no_set_epoch": "same_order", "rank0_validation": "one_rank_validates",
    "shared_validation": "healthy",
    "rank0_checkpoint": "one_rank_checkpoints", "lopsided_shards": "uneven_work",
    "accumulate": "healthy", "accumulate_sync": "exchanged_too_often", "no_set_device": "guests_on_a_gpu",
    "uneven_inputs": "never_joined", "uneven_joined": "healthy", "data_parallel": "one_drives_all",
}

STEPS = {
    "tiny_model": 40, "large_batch": 80, "starved_loader": 6, "no_set_epoch": 52, "rank0_validation": 40,
    "shared_validation": 40, "rank0_checkpoint": 40,
    "accumulate": 6, "accumulate_sync": 6, "uneven_inputs": 80, "uneven_joined": 80,
}
"""Long enough for a few sample periods, two epochs or three pauses, or until a rank has no more batches; one that no longer fits comes in
step 49 or 61. Others: 16."""

BATCHES = {"lopsided_shards": 16}
"""What fits the smallest of these GPUs. Others: the default."""

ONE_KIND = ("accumulate", "accumulate_sync")
"""On the first kind only: a slower GPU hides what they show, and a faster one is held back by the link even where it is done right."""


def cases(seeds: int) -> Iterator[tuple[str, RunConfig]]:
    """(scenario, config) of every run."""
    for seed in range(seeds):
        for kind in KINDS:
            for scenario in OWN_CAUSE:
                if scenario in ONE_KIND and kind != KINDS[0]:
                    continue
                knobs = {"batch": BATCHES[scenario]} if scenario in BATCHES else {}
                yield scenario, RunConfig.parse(
                    {"scenario": scenario, "gpu": kind, "seed": seed, "steps": STEPS.get(scenario, 16), **knobs}
                )


def judged(verdicts: list[tuple[str, Diagnosis]]) -> dict[str, Any]:
    """The figures of one way of looking."""
    first = [(OWN_CAUSE[scenario], verdict.findings[0] if verdict.findings else None) for scenario, verdict in verdicts]
    right = [finding.confidence for own, finding in first if finding is not None and finding.cause == own]
    others = [
        finding.confidence
        for scenario, verdict in verdicts for finding in verdict.findings if finding.cause not in (OWN_CAUSE[scenario], "healthy")
    ]
    return {
        "right": len(right),
        "wrong": sum(finding is not None and finding.cause != own for own, finding in first),
        "wrong_with_high_confidence": sum(
            finding is not None and finding.cause != own and finding.confidence >= SURE for own, finding in first
        ),
        "not_enough": sum(not verdict.enough for _, verdict in verdicts),
        "confidence_median": median(right) if right else None,
        "confidence_lowest": min(right, default=None),
        "other_cause_highest": max(others, default=0.0),
    }


def main() -> None:
    options = arguments(__doc__, seeds=20)
    both, alone = [], []
    with warm_runs() as runs:
        for scenario, config in cases(options.seeds):
            run = runs.start(config, viewer="benchmark", pace="fast")
            over(runs, run)
            samples, head = samples_of(run.run_dir), head_of(run.run_dir)
            both.append((scenario, diagnose(samples, spans_of(run.run_dir), head)))
            alone.append((scenario, diagnose(samples, (), head)))
            for verdict in (both[-1][1], alone[-1][1]):
                if not verdict.findings or verdict.findings[0].cause != OWN_CAUSE[scenario]:
                    print(f"{config.scenario} on {config.gpu}, seed {config.seed}: {verdict}", file=sys.stderr, flush=True)
    report(
        "diagnosis",
        {"runs": len(both), **judged(both), **{f"samples_alone_{name}": value for name, value in judged(alone).items()}},
        as_json=options.json,
    )


if __name__ == "__main__":
    main()
