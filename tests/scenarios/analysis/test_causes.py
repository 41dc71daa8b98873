"""Where each cause begins and ends, on spans and samples made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scenarios.analysis.diagnosis import Diagnosis, diagnose, likelihood
from scenarios.telemetry import Kind, Sample, Span, Stream
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
    density: float = 1.0, alone: int = 0,
) -> list[Span]:
    """Steps of four ranks: load, forward, backward of 60 ms, spin for the last of them, an exposed all-reduce, optimizer of 2 ms.

    `alone` passes forward and backward, of 10 ms each and without an all-reduce, come before.
    """
    made: list[Span] = []
    zero = 0.0
    for step in range(steps):
        for _ in range(alone):
            for rank in GPUS:
                made.append(span(rank, "compute", "forward", step, zero, zero + 10))
                made.append(span(rank, "compute", "backward", step, zero + 10, zero + 20))
            zero += 20
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


def test_a_rank_with_more_work_holds_more_and_a_slow_gpu_does_not() -> None:
    graded = spans(forward=(10, 15, 25, 60))

    def memory(rank: int, period: int) -> float:
        return (11.0, 13.0, 17.0, 30.0)[rank]

    found = diagnose(samples(memory_gib=memory), graded, HEAD)
    assert (confidences(found), found.findings[0].rank) == ({"uneven_work": 0.97}, 3)
    assert "It also holds 30.0 GiB, the others 11.0 to 17.0 GiB" in found.findings[0].evidence[1]
    by_samples = diagnose(samples(memory_gib=memory, spin_pct=lambda rank, period: (60.0, 50.0, 40.0, 0.2)[rank]), (), HEAD)
    assert (by_samples.findings[0].cause, by_samples.findings[0].rank) == ("uneven_work", 3)
    assert all(finding.confidence < 0.6 for finding in by_samples.findings[1:])
    # Two slow GPUs differ in their forward passes as well, and in nothing else.
    slow = confidences(diagnose(samples(), spans(forward=(30, 30, 45, 60)), HEAD))
    assert slow["straggler"] > 0.6 > slow["uneven_work"]
    # Other ranks' processes on a GPU are no work of its own.
    guests = samples(memory_gib=lambda rank, period: 14.0 if rank else 17.5, processes=lambda rank, period: 1 if rank else 4)
    crowded = confidences(diagnose(guests, spans(forward=(45, 30, 30, 30)), HEAD))
    assert crowded == {"straggler": 0.97, "guests_on_a_gpu": 0.97}


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


def test_gradients_exchanged_in_every_pass_are_told_from_a_slow_link() -> None:
    passes = [[made for made in spans(all_reduce=30) if made.step == step] for step in range(8)]
    often = [
        replace(made, step=step // 2) for step, mine in enumerate(passes) for made in mine if step % 2 or made.kind != "optimizer"
    ]  # every other pass has no optimizer: two passes make a step, and both all-reduce
    found = diagnose(samples(), often, HEAD)
    assert found.findings[0].cause == "exchanged_too_often"
    assert found.findings[0].evidence[0].startswith("2 backward passes make a step, and 2 of them all-reduce their gradients")
    assert 0.2 < confidences(found)["communication_bound"] < 0.97, "what the last pass exchanges is not hidden either"
    once = confidences(diagnose(samples(), spans(alone=1, all_reduce=40), HEAD))
    assert "exchanged_too_often" not in once
    assert once["communication_bound"] == 0.97


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


def test_processes_that_open_anothers_gpu_are_counted_or_guessed_from_its_memory() -> None:
    def memory(rank: int, period: int) -> float:
        return 15.5 if rank == 0 else 14.0

    counted = diagnose(samples(memory_gib=memory, processes=lambda rank, period: 1 if rank else 4), spans(), HEAD).findings[0]
    assert (counted.cause, counted.rank, counted.confidence) == ("guests_on_a_gpu", 0, 0.97)
    assert counted.evidence[1] == "GPU 0 holds 1.5 GiB more than the others: 15.5 against 14.0 GiB."
    guessed = confidences(diagnose(samples(memory_gib=memory), (), HEAD))
    assert guessed == {"guests_on_a_gpu": 0.55, "healthy": 0.45}
    own = confidences(diagnose(samples(memory_gib=memory, processes=1), spans(), HEAD))
    assert own == {"healthy": 0.97}, "nobody else is there: it keeps something of its own"
    little = samples(memory_gib=lambda rank, period: 14.5 if rank == 0 else 14.0)
    assert confidences(diagnose(little, (), HEAD)) == {"healthy": 0.85}


def test_a_rank_that_never_comes_is_told_from_one_that_is_late() -> None:
    def stuck(number: int, **fields: Any) -> list[Sample]:
        """Sixteen periods, in the last `number` of which GPU 2 has left."""
        def step(rank: int, period: int) -> int:
            return 3 + min(period, 15 - number)

        def busy(rank: int, period: int) -> float:
            return 0.0 if rank == 2 and period > 15 - number else 99.0

        def spin(rank: int, period: int) -> float:
            return 98.0 if rank != 2 and period > 15 - number else 0.5

        return samples(16, **({"step": step, "gpu_util": busy, "spin_pct": spin} | fields))

    found = diagnose(stuck(11), spans(), HEAD)
    first = found.findings[0]
    assert (first.cause, first.rank, first.confidence) == ("never_joined", 2, 0.97)
    assert first.evidence[0].startswith("In the last 2.2 s no step ended: GPUs 0, 1, 3 wait in a collective, busy by nvidia-smi")
    assert [finding.cause for finding in found.findings] == ["never_joined"], "what came before was healthy"
    assert "never_joined" not in confidences(diagnose(stuck(6), spans(), HEAD)), "it may yet come"
    unseen = stuck(11, spin_pct=None, sm_active=lambda rank, period: 12.0 if period > 4 else 88.0)
    assert confidences(diagnose(unseen, spans(), HEAD))["never_joined"] == 0.75
    assert "never_joined" not in confidences(diagnose(stuck(11, spin_pct=None), spans(), HEAD)), "the others work"


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


def pausing(kind: Kind, stream: Stream) -> list[Span]:
    """Every fourth step begins with 100 ms that rank 0 alone is away."""
    made: list[Span] = []
    zero = 0.0
    for step in range(12):
        away = 100.0 if step % 4 == 3 else 0.0
        for rank in GPUS:
            at = zero + (0.0 if rank else away)
            made += [
                span(rank, "compute", "forward", step, at, at + 30), span(rank, "compute", "backward", step, at + 30, at + 90),
                span(rank, "comm", "spin", step, at + 90, zero + away + 90),
                span(rank, "comm", "all_reduce", step, zero + away + 90, zero + away + 92),
                span(rank, "compute", "optimizer", step, zero + away + 92, zero + away + 94),
            ]
        made.append(span(0, stream, kind, step, zero, zero + away))
        zero += away + 94
    return made


@pytest.mark.parametrize(
    ("kind", "stream", "cause", "busy"),
    [("validate", "compute", "one_rank_validates", 98.0), ("checkpoint", "host", "one_rank_checkpoints", 4.0)],
)
def test_a_rank_that_is_away_every_few_steps(kind: Kind, stream: Stream, cause: str, busy: float) -> None:
    found = diagnose(samples(), pausing(kind, stream), HEAD)
    assert (confidences(found), found.findings[0].rank) == ({cause: 0.97}, 0)
    assert "GPU 0 spends 24 % of the time" in found.sentence

    def spin(rank: int, period: int) -> float:
        return 95.0 if rank and period % 6 == 5 else 0.5

    seen = samples(
        18, spin_pct=spin, step=lambda rank, period: 3 + 4 * (period // 6) + period % 6,
        gpu_util=lambda rank, period: busy if rank == 0 and period % 6 == 5 else 99.0,
    )
    alone = diagnose(seen, (), HEAD)
    assert (alone.findings[0].cause, alone.findings[0].rank) == (cause, 0)
    assert 0.6 <= alone.findings[0].confidence < 0.8
    assert all(finding.confidence < 0.6 for finding in alone.findings[1:]), "it is not late in every step"


def test_waiting_in_every_step_is_no_pause() -> None:
    every_step = samples(12, spin_pct=lambda rank, period: 95.0 if rank and period % 2 else 0.5, step=lambda rank, period: 3 + period // 2)
    assert not any(finding.cause.startswith("one_rank_") for finding in diagnose(every_step, (), HEAD).findings)
    once = samples(12, spin_pct=lambda rank, period: 95.0 if rank and period == 6 else 0.5)
    assert not any(finding.cause.startswith("one_rank_") for finding in diagnose(once, (), HEAD).findings)


def test_the_same_order_every_epoch_needs_a_second_epoch_to_be_seen() -> None:
    found = diagnose(samples(repeated_pct=100.0), spans(), HEAD)
    assert confidences(found) == {"same_order": 0.97}
    assert "100 % of the steps saw the same samples in the same order" in found.sentence
    unknown = diagnose(samples(repeated_pct=None), spans(), HEAD)
    assert confidences(unknown) == {"healthy": 0.97}
    assert "Whether epochs differ in their order takes two of them to see." in unknown.findings[0].evidence


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
    # One rank alone, whose samples are longer or whose GPU others fill: the others' last readings are of the step before.
    alone = samples(memory_gib=lambda rank, period: (None if period == 5 else 12.0) if rank else (79.4 if period == 5 else 30.0))
    one = diagnose(alone, [*spans(), span(0, "compute", "forward", 8, 2000, 2020)], HEAD).findings[0]
    assert (one.cause, one.rank, one.title) == ("batch_too_large", 0, "The batch is too large for GPU 0")
    assert "GPU 0 held 79.4 of 80.0 GiB" in one.evidence[0]
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
