"""Every nanosecond of a steady step belongs to one part."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.analysis.breakdown import PARTS, breakdown, gpu_shares, timeline
from scenarios.analysis.measured_spans import breakdown_of_run
from scenarios.record import spans_of
from scenarios.telemetry import Span
from tests.scenarios.analysis.made import MS, span
from tests.scenarios.conftest import RunFresh


def one_step(step: int, zero: float) -> list[Span]:
    """A step of 100 ms that has everything once: see the test below."""
    at = zero
    return [
        span(0, "host", "load", step, at, at + 10),
        span(0, "copy", "copy", step, at + 10, at + 15),
        span(0, "compute", "decode", step, at + 15, at + 20),
        span(0, "compute", "forward", step, at + 22, at + 42, busy=0.5),
        span(0, "compute", "backward", step, at + 42, at + 62),
        span(0, "comm", "spin", step, at + 52, at + 66),
        span(0, "comm", "all_reduce", step, at + 66, at + 76),
        span(0, "compute", "backward", step, at + 70, at + 73),
        span(0, "host", "wait", step, at + 76, at + 84),
        span(0, "compute", "validate", step, at + 84, at + 86, busy=0.5),
        span(0, "host", "validate", step, at + 86, at + 87),
        span(0, "host", "checkpoint", step, at + 87, at + 90),
        span(0, "compute", "optimizer", step, at + 92, at + 100),
    ]


def steps(count: int) -> list[Span]:
    return [made for step in range(count) for made in one_step(step, 100.0 * step)]


def test_each_part_is_what_the_gpu_did_or_why_it_idled() -> None:
    (rank,) = breakdown(steps(5))
    assert rank.steps == 3
    assert rank.step_s == 0.1
    milliseconds = {part: round(seconds * 1000, 6) for part, seconds in rank.parts.items()}
    assert milliseconds == {
        "input": 10, "copy": 5, "decode": 5, "forward": 10, "backward": 23, "optimizer": 8,
        "spin": 4, "all_reduce": 7, "wait": 8, "hand_off": 0, "replicate": 0,
        "validate": 3,  # its gaps and its loader included
        "checkpoint": 3,
        "launch": 10 + 2 + 2,  # gaps within the forward pass, and before it and the optimizer, where the host is silent
    }  # fmt: skip
    assert rank.hidden_all_reduce_s == pytest.approx(0.003)
    assert sum(rank.parts_ns.values()) == rank.window_ns


def test_shares_hide_what_runs_beside_kernels() -> None:
    (shares,) = gpu_shares(steps(5))
    assert (shares.compute, shares.communication, shares.copies) == pytest.approx((0.47, 0.11, 0.05))
    assert shares.compute + shares.communication + shares.copies + shares.idle == pytest.approx(1)


def test_a_step_that_never_ended_and_the_warm_up_are_left_out() -> None:
    broken_off = [made for made in one_step(5, 500.0) if made.kind != "optimizer"]
    assert breakdown([*steps(5), *broken_off]) == breakdown(steps(5))
    assert breakdown(steps(2)) == ()
    assert breakdown([]) == ()
    assert timeline(steps(1)) == ()


def test_a_hand_off_by_the_host_is_not_launching() -> None:
    spans = [*steps(3), span(0, "host", "scatter", 2, 290, 292)]
    (rank,) = breakdown(spans)
    assert rank.parts["hand_off"] == pytest.approx(0.002)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["host", "compute", "copy", "comm"]), st.integers(1, 999), st.integers(1, 99),
                          st.floats(0, 1)), max_size=40))  # fmt: skip
def test_parts_add_up_whatever_the_spans(rows: list[tuple[str, int, int, float]]) -> None:
    kinds = {"host": "load", "compute": "forward", "copy": "copy", "comm": "spin"}
    spans, free = steps(1), dict.fromkeys(kinds, 100 * MS)
    for stream, gap, length, busy in rows:
        start = free[stream] + gap * 997
        free[stream] = end = start + length * 10_007
        busy_ns = int((end - start) * busy)
        spans.append(
            Span(rank=0, stream=stream, kind=kinds[stream], step=1, start_ns=start, end_ns=end, busy_ns=busy_ns, sm_active=1)
        )
    last = max(free.values()) // MS + 1
    spans.append(span(0, "compute", "optimizer", 1, last, last + 1))
    (rank,) = breakdown(spans, warm_up_steps=1)
    assert sum(rank.parts_ns.values()) == rank.window_ns
    assert set(rank.parts_ns) == set(PARTS)
    assert min(rank.parts_ns.values()) >= 0


@pytest.fixture(scope="module")
def fed_by_rank0(run_fresh: RunFresh) -> Path:
    return run_fresh(scenario="rank0_loading", steps=8)


def test_ranks_that_are_fed_wait_for_the_one_that_feeds(fed_by_rank0: Path) -> None:
    ranks = breakdown_of_run(fed_by_rank0)
    assert [rank.rank for rank in ranks] == list(range(8))
    assert len({round(rank.step_s, 2) for rank in ranks}) == 1
    for rank in ranks:
        assert sum(rank.parts.values()) == pytest.approx(rank.step_s, abs=1e-12)
        assert (rank.share("wait") > 0.5) == (rank.rank > 0)
    assert ranks[0].share("decode") > 0.5
    assert ranks[0].share("hand_off") > 0.03


def test_a_collective_that_waits_is_spinning(run_fresh: RunFresh) -> None:
    ranks = breakdown_of_run(run_fresh(scenario="rank0_loading", steps=8, hand_off="nccl"))
    assert len(ranks) == 8
    assert all((rank.share("spin") > 0.5) == (rank.rank > 0) for rank in ranks)
    assert all(rank.share("wait", "input", "launch") < 0.02 for rank in ranks)


def test_a_loader_that_is_late_and_launches_that_are_slow(run_fresh: RunFresh) -> None:
    starved = breakdown_of_run(run_fresh(scenario="sharded", steps=12, preprocess="cpu"))
    assert len(starved) == 8
    assert all(rank.share("input") > 0.3 for rank in starved)
    tiny = breakdown_of_run(run_fresh(scenario="tiny_model", steps=8, gpus=2))
    assert len(tiny) == 2
    assert all(rank.share("launch") > 0.5 for rank in tiny)


def test_the_timeline_shows_the_last_steps_of_all_ranks_on_one_clock(fed_by_rank0: Path) -> None:
    segments = timeline(spans_of(fed_by_rank0), steps=2)
    step_s = breakdown_of_run(fed_by_rank0)[0].step_s
    for rank in range(8):
        lane = [segment for segment in segments if segment.rank == rank and segment.lane == "gpu"]
        assert lane[0].start_s == 0
        assert all(left.end_s == right.start_s for left, right in pairwise(lane))
        assert lane[-1].end_s == pytest.approx(2 * step_s, rel=0.05)
    assert {segment.rank for segment in timeline(spans_of(fed_by_rank0), ranks=[0, 3])} == {0, 3}
