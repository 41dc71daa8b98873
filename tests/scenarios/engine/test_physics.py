"""The physics of virtual time as properties over random runs, rehearsed without processes; and that a rehearsal is what a real run does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS
from scenarios.costs.models import MODELS
from scenarios.costs.predict import predict
from scenarios.record import samples_of, spans_of
from scenarios.rehearsal import Rehearsal, rehearse, samples_of_rehearsal
from scenarios.telemetry import Kind, Span
from scenarios.virtual.simulate import step_seconds

STEPS = 5
SLACK_NS = 50
"""Durations are whole nanoseconds: a run may round a few of them the other way."""

SLOWER_FIRST = [
    ("v100-16gb", "v100-32gb"), ("v100-32gb", "a100-40gb"), ("a100-40gb", "a100-80gb"), ("a100-80gb", "h100-80gb"),
    ("h100-80gb", "h200-141gb"), ("h200-141gb", "b200-180gb"),
    ("t4-16gb", "rtx3090-24gb"), ("l4-24gb", "rtx4090-24gb"), ("rtx3090-24gb", "rtx4090-24gb"),
]
"""Within a pair every rate of the first is at most the second's."""

SLOWER_LINKS = [
    (slow.name, fast.name)
    for slow in LINKS.values()
    for fast in LINKS.values()
    if slow is not fast and slow.bus_gb_s <= fast.bus_gb_s and slow.latency_us >= fast.latency_us
    and (slow.nvls_gb_s or 0.0) <= (fast.nvls_gb_s or 0.0)
]

KNOBS: dict[str, Any] = {
    "scenario": st.sampled_from(["sharded", "rank0_loading"]),
    "gpu": st.sampled_from(sorted(GPUS)),
    "model": st.sampled_from(sorted(MODELS)),
    "batch": st.sampled_from([1, 7, 32, 256]),
    "precision": st.sampled_from(["fp32", "tf32", "amp"]),
    "gpus": st.integers(1, 8),
    "link": st.sampled_from(["", *LINKS]),
    "workers": st.sampled_from([0, 1, 2, 8, 32]),
    "straggler": st.sampled_from([None, 0, 1, 5]),
    "straggler_pct": st.sampled_from([5, 50, 400]),
    "hand_off": st.sampled_from(["cpu", "nccl"]),
    "preprocess": st.sampled_from(["gpu", "cpu"]),
    "seed": st.integers(0, 99),
}
ANY_RUN = st.fixed_dictionaries(KNOBS)
quick = settings(max_examples=50, deadline=None, derandomize=True)


def config_of(knobs: dict[str, Any], **changed: Any) -> RunConfig:
    values = {**knobs, **changed}
    if values["straggler"] is not None:
        values["straggler"] = min(values["straggler"], values["gpus"] - 1)
    return RunConfig.applied(values)


def run(knobs: dict[str, Any], **changed: Any) -> Rehearsal:
    return rehearse(config_of(knobs, **changed), steps=STEPS)


def by_step(spans: Iterable[Span], kind: Kind) -> dict[tuple[int, int], list[Span]]:
    """The spans of one kind, by step and rank."""
    found: dict[tuple[int, int], list[Span]] = defaultdict(list)
    for span in spans:
        if span.kind == kind:
            found[span.step, span.rank].append(span)
    return found


def never_shorter(slow: Rehearsal, fast: Rehearsal) -> None:
    for later_ns, sooner_ns in zip(slow.step_ends_ns, fast.step_ends_ns, strict=True):
        assert later_ns >= sooner_ns - SLACK_NS


@quick
@given(ANY_RUN)
def test_spans_of_one_stream_never_overlap(knobs: dict[str, Any]) -> None:
    last: dict[tuple[int, str], int] = {}
    for span in run(knobs).spans:
        key = (span.rank, span.stream)
        assert span.start_ns >= last.get(key, 0)
        assert 0 <= span.busy_ns <= span.end_ns - span.start_ns
        last[key] = span.end_ns


@quick
@given(ANY_RUN)
def test_shares_are_percentages_and_useful_work_is_never_more_than_utilization(knobs: dict[str, Any]) -> None:
    limits = GPUS[knobs["gpu"]]
    config = config_of(knobs)
    for sample in samples_of_rehearsal(config, rehearse(config, steps=8)):
        assert sample.gpu_util is not None
        assert sample.sm_active is not None
        assert sample.spin_pct is not None
        assert sample.power_w is not None
        assert 0.0 <= sample.sm_active <= sample.gpu_util + 1e-9
        assert 0.0 <= sample.spin_pct <= sample.gpu_util + 1e-9
        assert sample.gpu_util <= 100.0 + 1e-9
        assert limits.idle_w <= sample.power_w <= limits.peak_w


@quick
@given(ANY_RUN)
def test_all_leave_a_collective_together_and_none_before_the_last_arrived(knobs: dict[str, Any]) -> None:
    world = knobs["gpus"]
    assume(world > 1)
    rehearsal = run(knobs)
    for ends_ns in rehearsal.comm_ends_ns:
        assert len(set(ends_ns)) == 1
    filled, reduced = by_step(rehearsal.spans, "backward"), by_step(rehearsal.spans, "all_reduce")
    for step in range(STEPS):
        buckets = [reduced[step, rank] for rank in range(world)]
        assert len({tuple((span.start_ns, span.end_ns) for span in spans) for spans in buckets}) == 1
        for rank in range(world):
            assert len(filled[step, rank]) == len(buckets[rank]) > 0
            for ready, transfer in zip(filled[step, rank], buckets[0], strict=True):
                assert transfer.start_ns >= ready.end_ns


@quick
@given(ANY_RUN)
def test_nobody_receives_before_it_was_sent(knobs: dict[str, Any]) -> None:
    config = config_of(knobs, scenario="rank0_loading")
    rehearsal = rehearse(config, steps=STEPS)
    sent, received = by_step(rehearsal.spans, "scatter"), by_step(rehearsal.spans, "copy")
    decoded, trained = by_step(rehearsal.spans, "decode"), by_step(rehearsal.spans, "forward")
    for step in range(STEPS):
        ready_ns = max((span.end_ns for span in decoded[step, 0]), default=0)
        for rank in range(1, config.gpus):
            if config.hand_off == "cpu":
                parcel = sent[step, 0][rank - 1]
                (arrival,) = received[step, rank]
                assert parcel.start_ns >= ready_ns
                assert arrival.start_ns >= parcel.end_ns
            else:
                (parcel,), (arrival,) = sent[step, 0], sent[step, rank]
                assert parcel.start_ns >= ready_ns
                assert (arrival.start_ns, arrival.end_ns) == (parcel.start_ns, parcel.end_ns)
            assert trained[step, rank][0].start_ns >= arrival.end_ns


@quick
@given(ANY_RUN)
def test_bytes_sent_are_bytes_received(knobs: dict[str, Any]) -> None:
    config, rehearsal = config_of(knobs), run(knobs)
    sent, received = (sum(getattr(traffic, way) for traffic in rehearsal.traffic) for way in ("sent", "received"))
    assert sent == received
    assert (sent > 0) == (config.gpus > 1)
    if config.scenario == "rank0_loading":
        shards = STEPS * config.batch * MODELS[config.model].decoded_bytes_per_sample * (config.gpus - 1)
        assert rehearsal.traffic[0].sent - rehearsal.traffic[0].received == shards


@quick
@given(ANY_RUN, st.sampled_from(SLOWER_FIRST), st.sampled_from(sorted(LINKS)))
def test_a_slower_gpu_never_shortens_a_step(knobs: dict[str, Any], gpus: tuple[str, str], link: str) -> None:
    slow, fast = gpus
    never_shorter(run(knobs, gpu=slow, link=link), run(knobs, gpu=fast, link=link))


@quick
@given(ANY_RUN, st.sampled_from(SLOWER_LINKS))
def test_a_slower_link_never_shortens_a_step(knobs: dict[str, Any], links: tuple[str, str]) -> None:
    slow, fast = links
    never_shorter(run(knobs, link=slow), run(knobs, link=fast))


@quick
@given(ANY_RUN, st.integers(0, 7), st.tuples(st.integers(1, 400), st.integers(1, 400)))
def test_a_slower_straggler_never_shortens_a_step(knobs: dict[str, Any], rank: int, pcts: tuple[int, int]) -> None:
    slow, fast = max(pcts), min(pcts)
    never_shorter(run(knobs, straggler=rank, straggler_pct=slow), run(knobs, straggler=rank, straggler_pct=fast))
    never_shorter(run(knobs, straggler=rank, straggler_pct=fast), run(knobs, straggler=None))


@quick
@given(ANY_RUN, st.tuples(st.integers(1, 8), st.integers(1, 8)))
def test_more_ranks_on_one_host_never_shorten_a_step(knobs: dict[str, Any], worlds: tuple[int, int]) -> None:
    few, many = min(worlds), max(worlds)
    straggler = None if knobs["straggler"] is None else min(knobs["straggler"], few - 1)
    never_shorter(run(knobs, gpus=many, straggler=straggler), run(knobs, gpus=few, straggler=straggler))


@quick
@given(
    model=st.sampled_from(sorted(MODELS)),
    gpu=st.sampled_from(sorted(GPUS)), precision=st.sampled_from(["fp32", "tf32", "amp"]), batch=st.sampled_from([8, 64, 256]),
)
def test_one_rank_alone_is_as_fast_as_predicted_for_one_gpu(model: str, gpu: str, precision: str, batch: int) -> None:
    predicted = predict(model=model, gpu=gpu, precision=precision, batch=batch, gpus=1)["one_gpu_samples_per_second"]
    ready_made_s = step_seconds(model=model, gpu=gpu, precision=precision, batch=batch, world=1, decode=False)
    assert batch / ready_made_s == pytest.approx(predicted, rel=0.01)
    if not MODELS[model].decodes:
        alone = RunConfig.parse({"scenario": "sharded", "gpus": 1, "model": model, "gpu": gpu, "precision": precision, "batch": batch})
        assert batch / rehearse(alone, steps=10).step_seconds(3) == pytest.approx(predicted, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    "knobs",
    [
        {"scenario": "sharded", "gpus": 3, "link": "pcie4", "straggler": 1, "preprocess": "cpu", "workers": 2},
        {"scenario": "rank0_loading", "gpus": 2, "gpu": "v100-32gb", "seed": 7},
        {"scenario": "rank0_loading", "gpus": 3, "hand_off": "nccl", "workers": 0},
        {"scenario": "rank0_validation", "gpus": 2, "model": "mlp", "batch": 1024, "steps": 14},
        {"scenario": "rank0_checkpoint", "gpus": 2, "steps": 14},
    ],
    ids=lambda knobs: str(knobs["scenario"]),
)
def test_a_rehearsal_is_what_a_real_run_does(run_fresh: Callable[..., Path], knobs: dict[str, Any]) -> None:
    knobs = {"batch": 64, "steps": 10} | knobs
    config, run_dir = RunConfig.parse(knobs), run_fresh(**knobs)
    rehearsal = rehearse(config, steps=knobs["steps"])
    for rank in range(config.gpus):
        assert [span for span in spans_of(run_dir) if span.rank == rank] == [span for span in rehearsal.spans if span.rank == rank]
    seen = [(sample.gpu_util, sample.power_w) for sample in samples_of(run_dir)]
    assert seen == [(round(sample.gpu_util or 0.0, 1), round(sample.power_w or 0.0)) for sample in samples_of_rehearsal(config, rehearsal)]
