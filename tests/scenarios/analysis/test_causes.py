"""Where each cause begins and ends, on spans and samples made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from scenarios.analysis.diagnosis import Diagnosis, diagnose, likelihood
from scenarios.telemetry import Sample, Span
from tests.scenarios.analysis.made import sample, span

HEAD: dict[str, Any] = {"gpus": 4, "memory_limit_gib": 80.0, "power_limit_w": 400.0}
GPUS = range(4)


def samples(periods: int = 6, **fields: Any) -> list[Sample]:
    """Four GPUs alike, over some periods. A field may be a function of rank and period."""
    return [
        sample(rank, period, **{name: value(rank, period) if callable(value) else value for name, value in fields.items()})
        for period in range(periods) for rank in GPUS
    ]


def spans(
    *, steps: int = 8, forward: tuple[float, ...] = (30, 30, 30, 30), load: tuple[float, ...] = (0, 0, 0, 0), all_reduce: float = 2,
    density: float = 1.0,
) -> list[Span]:
    """Steps of four ranks: load, forward, backward of 60 ms, spin for the last of them, an exposed all-reduce, optimizer of 2 ms."""
    made: list[Span] = []
    zero = 0.0
    for step in range(steps):
        ends = [zero + load[rank] + forward[rank] + 60 for rank in GPUS]
        for rank in GPUS:
            at = zero + load[rank]
            made += [
                span(rank, "host", "load", step, zero, at),
                span(rank, "compute", "forward", step, at, at + forward[rank], busy=density),
                span(rank, "compute", "backward", step, at + forward[rank], ends[rank], busy=density),
                span(rank, "comm", "spin", step, ends[rank], max(ends)),
                span(rank, "comm", "all_reduce", step, max(ends), max(ends) + all_reduce),
                span(rank, "compute", "optimizer", step, max(ends) + all_reduce, max(ends) + all_reduce + 2),
            ]
        zero = max(ends) + all_reduce + 2
    return made


def confidences(diagnosis: Diagnosis) -> dict[str, float]:
    return {finding.cause: finding.confidence for finding in diagnosis.findings}


def test_a_healthy_run_is_healthy_with_and_without_spans() -> None:
    assert confidences(diagnose(samples(), spans(), HEAD)) == {"healthy": 0.97}
    assert confidences(diagnose(samples(), (), HEAD)) == {"healthy": 0.85}
    unknown = diagnose(samples(distinct_pct=None), spans(), HEAD)
    assert confidences(unknown) == {"healthy": 0.55}
    assert "not measured" in " ".join(unknown.findings[0].evidence)


def test_a_straggler_is_named_and_a_little_slower_is_only_possible() -> None:
    slow = diagnose(samples(), spans(forward=(30, 30, 39, 30)), HEAD).findings[0]
    assert (slow.cause, slow.rank, slow.confidence) == ("straggler", 2, 0.97)
    assert slow.evidence[0] == "GPU 2's forward pass takes 39.0 ms, 30 % longer than the median of the others (30.0 ms)."
    mild = confidences(diagnose(samples(), spans(forward=(30, 30, 31.8, 30)), HEAD))
    assert 0 < mild["straggler"] < 0.6 < mild["healthy"]
    assert "straggler" not in confidences(diagnose(samples(), spans(forward=(30, 30, 30.3, 30)), HEAD))


def test_a_straggler_shows_in_samples_by_who_waits_least() -> None:
    found = diagnose(samples(spin_pct=lambda rank, period: 0.4 if rank == 3 else 18.0), (), HEAD).findings[0]
    assert (found.cause, found.rank) == ("straggler", 3)
    assert found.confidence >= 0.8
    jitter = confidences(diagnose(samples(spin_pct=lambda rank, period: 0.2 if rank == 3 else 1.2), (), HEAD))
    assert "straggler" not in jitter


def test_one_loader_that_is_late_is_not_a_slow_gpu_and_all_are_no_straggler() -> None:
    alone = diagnose(samples(), spans(load=(0, 40, 0, 0)), HEAD).findings[0]
    assert (alone.cause, alone.rank) == ("straggler", 1)
    assert "loader" in alone.title
    everywhere = confidences(diagnose(samples(), spans(load=(38, 40, 36, 38)), HEAD))
    assert everywhere["input_bound"] == 0.97
    assert "straggler" not in everywhere


@pytest.mark.parametrize(("load", "least", "most"), [(2, 0, 0.0), (8, 0.2, 0.6), (20, 0.97, 0.97)])
def test_input_bound_grows_with_what_it_costs(load: float, least: float, most: float) -> None:
    found = confidences(diagnose(samples(), spans(load=(load,) * 4), HEAD)).get("input_bound", 0.0)
    assert least <= found <= most


@pytest.mark.parametrize(("density", "least", "most"), [(0.95, 0, 0.0), (0.8, 0.2, 0.6), (0.6, 0.97, 0.97)])
def test_launch_bound_grows_with_the_gaps(density: float, least: float, most: float) -> None:
    found = confidences(diagnose(samples(), spans(density=density), HEAD)).get("launch_bound", 0.0)
    assert least <= found <= most


@pytest.mark.parametrize(("all_reduce", "least", "most"), [(4, 0, 0.0), (12, 0.2, 0.6), (40, 0.97, 0.97)])
def test_communication_bound_grows_with_what_is_exposed(all_reduce: float, least: float, most: float) -> None:
    found = confidences(diagnose(samples(), spans(all_reduce=all_reduce), HEAD)).get("communication_bound", 0.0)
    assert least <= found <= most


def test_two_causes_are_both_named() -> None:
    mixed = diagnose(samples(distinct_pct=25.0), spans(forward=(30, 45, 30, 30)), HEAD)
    assert confidences(mixed) == {"not_sharded": 0.97, "straggler": 0.97}
    assert "Also found: GPU 1 is slower than the others." in mixed.sentence


def test_hand_off_over_the_host_and_in_a_kernel() -> None:
    def busy(rank: int, period: int) -> float:
        return 20.0 if rank else 95.0

    over_host = diagnose(samples(gpu_util=busy, sm_active=18.0, spin_pct=0.5), (), HEAD).findings[0]
    assert (over_host.cause, over_host.rank) == ("rank0_feeds", 0)
    assert over_host.confidence >= 0.8
    small_kernels = diagnose(samples(gpu_util=busy, sm_active=3.0, spin_pct=0.5), (), HEAD)
    assert "rank0_feeds" not in confidences(small_kernels), "the others do not wait, their kernels are small"
    # Samples cannot tell a GPU that feeds from one that is four times slower: neither is sure.
    spinning = diagnose(samples(spin_pct=lambda rank, period: 74.0 if rank else 0.2, sm_active=26.0), (), HEAD)
    assert confidences(spinning) == {"rank0_feeds": 0.58, "straggler": 0.34}


def test_starved_and_small_kernels_differ_by_how_they_fill_the_gpu() -> None:
    assert confidences(diagnose(samples(gpu_util=38.0, sm_active=4.0, spin_pct=0.1), (), HEAD)) == {"launch_bound": 0.85}
    starved = confidences(diagnose(samples(gpu_util=40.0, sm_active=35.0, spin_pct=0.1), (), HEAD))
    assert max(starved, key=lambda cause: starved[cause]) == "input_bound"
    assert "launch_bound" not in starved
    moving = confidences(diagnose(samples(gpu_util=98.0, sm_active=26.0, spin_pct=0.1), (), HEAD))
    assert moving == {"communication_bound": 0.7}


def test_replicas_out_of_step() -> None:
    def rate(rank: int, period: int) -> float:
        return 0.1 if rank == 3 and period > 2 else 0.01

    both = diagnose(samples(learning_rate=rate, weights_apart=lambda rank, period: 0.05 * rank), (), HEAD)
    assert confidences(both) == {"schedulers_out_of_step": 0.97}
    assert "(0.1 and 0.01) in 3 sample periods" in both.findings[0].evidence[0]
    ahead = samples(learning_rate=lambda rank, period: 0.1 if (rank, period) == (0, 3) else 0.01)
    assert confidences(diagnose(ahead, (), HEAD)) == {"healthy": 0.85}, "a rank is a step ahead in one period"
    drift = diagnose(samples(weights_apart=lambda rank, period: 0.05 * rank), (), HEAD)
    assert confidences(drift) == {"schedulers_out_of_step": 0.5, "healthy": 0.5}


def test_memory_at_the_limit_is_a_cause_only_if_the_run_grew_or_ended_there() -> None:
    def memory(rank: int, period: int) -> float:
        return 20.0 if period < 4 else 79.4

    grown = diagnose(samples(memory_gib=memory), (), HEAD)
    assert confidences(grown)["batch_too_large"] == 0.9
    assert grown.findings[0].evidence[:2] == (
        "Memory reached 79.4 of 80.0 GiB on every GPU in the last period (99 %).", "It had grown to that from 20.0 GiB.",
    )  # fmt: skip
    ended = [*spans(), *(span(rank, "compute", "forward", 8, 2000, 2020) for rank in GPUS)]
    assert confidences(diagnose(samples(memory_gib=memory), ended, HEAD))["batch_too_large"] == 0.97
    assert confidences(diagnose(samples(memory_gib=79.4), spans(), HEAD)) == {"healthy": 0.7, "batch_too_large": 0.3}
    # One short period is enough where memory ended the run at its first batch.
    first = diagnose(samples(periods=1, memory_gib=79.4, step=0), [span(rank, "compute", "forward", 0, 0, 20) for rank in GPUS], HEAD)
    assert first.enough
    assert first.findings[0].cause == "batch_too_large"


def test_too_little_is_said() -> None:
    nothing = diagnose([], [], {})
    assert (nothing.findings, nothing.enough) == ((), False)
    assert nothing.sentence.startswith("Not enough evidence: ")
    short = diagnose(samples(periods=2), [], HEAD)
    assert not short.enough
    assert "there is only 1 sample period after the first two steps (3 are needed) and no steady steps with spans" in short.sentence
    gaps = diagnose(samples(gpu_util=lambda rank, period: None if rank else 90.0), [], HEAD)
    assert not gaps.enough
    assert "75 % of the samples hold no utilization" in gaps.sentence
    assert diagnose(samples(periods=2), spans(steps=6), HEAD).enough, "spans are enough by themselves"


def test_one_gpu_alone_has_nobody_to_wait_for() -> None:
    alone = [made for made in samples(distinct_pct=None) if made.rank == 0]
    mine = [made for made in spans(load=(30, 0, 0, 0)) if made.rank == 0 and made.stream != "comm"]
    found = diagnose(alone, mine, HEAD | {"gpus": 1})
    assert [finding.cause for finding in found.findings] == ["input_bound"]
    assert [finding.cause for finding in diagnose(alone, (), HEAD | {"gpus": 1}).findings] == ["healthy"]


def test_confidence_in_words() -> None:
    found = diagnose(samples(distinct_pct=25.0), (), HEAD)
    assert likelihood(found.findings[0]) == "very likely"
    assert found.sentence.startswith("Very likely: data is not sharded. Each sample was trained 4.0 times")
    assert found.as_dict["findings"][0]["likelihood"] == "very likely"
