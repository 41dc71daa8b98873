"""From step reports to samples: order, shares and gaps."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from scenarios.config import RunConfig
from scenarios.recorder import Outgoing, Recorder, StepState
from scenarios.telemetry import Kind, Span, Stream

MS = 1_000_000


def span(rank: int, stream: Stream, kind: Kind, start_ms: int, end_ms: int, *, busy: float = 1.0, sm: float = 0.5, step: int = 0) -> Span:
    length = (end_ms - start_ms) * MS
    return Span(
        rank=rank, stream=stream, kind=kind, step=step, start_ns=start_ms * MS, end_ns=end_ms * MS,
        busy_ns=round(length * busy), sm_active=sm,
    )


def state(end_ms: int, step: int, progress: float = 0.1, memory_gib: float = 10.0) -> StepState:
    return StepState(end_ns=end_ms * MS, step=step, progress=progress, learning_rate=0.1, memory_gib=memory_gib, apart=0.0)


def ticks(outgoing: list[Outgoing]) -> list[dict[str, Any]]:
    return [event.data for event in outgoing if event.event == "tick"]


def two_ranks() -> Recorder:
    return Recorder(RunConfig.parse({"scenario": "sharded", "gpus": 2}))


def test_a_period_closes_only_when_every_rank_has_passed_it() -> None:
    recorder = two_ranks()
    assert ticks(recorder.step(0, state(250, 1), [span(0, "compute", "forward", 0, 250)])) == []
    closed = ticks(recorder.step(1, state(210, 1), [span(1, "compute", "forward", 0, 50)]))
    assert [tick["t_ms"] for tick in closed] == [200]
    assert closed[0]["util"] == [100.0, 25.0]


def test_overlapping_streams_count_once_and_spinning_only_where_nothing_computes() -> None:
    recorder = two_ranks()
    recorder.step(0, state(200, 1), [span(0, "compute", "backward", 0, 100), span(0, "comm", "spin", 50, 150, sm=0.1)])
    (tick,) = ticks(recorder.step(1, state(200, 1), [span(1, "compute", "forward", 0, 200, busy=0.5)]))
    assert tick["util"] == [75.0, 50.0]
    assert tick["spin"] == [25.0, 0.0]
    assert tick["useful"] == [pytest.approx(30.0), 25.0]


def test_host_and_copies_are_not_utilization() -> None:
    recorder = two_ranks()
    recorder.step(0, state(200, 1), [span(0, "host", "wait", 0, 200), span(0, "copy", "copy", 0, 200)])
    (tick,) = ticks(recorder.step(1, state(200, 1), []))
    assert tick["util"] == [0.0, 0.0]


def test_a_rank_that_ended_is_a_gap_and_not_zero() -> None:
    recorder = two_ranks()
    recorder.step(0, state(150, 1), [span(0, "compute", "forward", 0, 150)])
    recorder.step(1, state(450, 1), [span(1, "compute", "forward", 0, 450)])
    last = ticks(recorder.finish(broke_off=True))[-1]
    assert last["t_ms"] == 450
    assert last["util"] == [None, 100.0]
    assert last["mem"][0] is None


def test_a_rank_that_is_through_idles_while_the_others_go_on() -> None:
    def play(*, early: bool) -> list[dict[str, Any]]:
        recorder = two_ranks()
        out = recorder.step(0, state(150, 1), [span(0, "compute", "forward", 0, 150)])
        if early:
            recorder.left(0)
        out += recorder.step(1, state(450, 1), [span(1, "comm", "spin", 0, 450)])
        recorder.left(0)
        return ticks(out + recorder.finish(broke_off=True))

    first, second, last = play(early=True)
    assert (first["util"], second["util"], last["util"]) == ([75.0, 100.0], [0.0, 100.0], [0.0, 100.0])
    assert (last["mem"], last["power"][0]) == ([10.0, 10.0], 60), "its process waits: memory held, idle power"
    assert play(early=False) == [first, second, last], "when it was heard to be through does not matter"


def test_a_run_that_broke_off_right_behind_a_period_still_shows_what_ended_it() -> None:
    recorder = two_ranks()
    for rank in (0, 1):
        recorder.step(rank, state(200, 1), [span(rank, "compute", "forward", 0, 200)])
        recorder.step(rank, replace(state(203, 2), memory_gib=31.7), [span(rank, "compute", "forward", 200, 203)])
    last = ticks(recorder.finish(broke_off=True))[-1]
    assert (last["t_ms"], last["util"], last["mem"]) == (203, [100.0, 100.0], [31.7, 31.7])


def test_the_stream_does_not_depend_on_the_order_in_which_ranks_report() -> None:
    def report(rank: int, step: int) -> tuple[int, StepState, list[Span], list[int]]:
        start_ms, end_ms = (step - 1) * 130 + 10 * rank, step * 130
        spans = [span(rank, "compute", "forward", start_ms, end_ms, step=step)]
        return rank, state(end_ms + 10 * rank, step, step / 3), spans, [step % 2, 10 * rank]

    reports = [report(rank, step) for rank in range(2) for step in range(1, 8)]

    def play(seed: int) -> tuple[str, str]:
        queues = {rank: [entry for entry in reports if entry[0] == rank] for rank in range(2)}
        rng, recorder, out = random.Random(seed), two_ranks(), []
        while any(queues.values()):
            rank = rng.choice([rank for rank in queues if queues[rank]])
            out += recorder.step(*queues[rank].pop(0))
        out += recorder.finish(broke_off=False)
        return json.dumps([event.data for event in out if event.event == "tick"]), recorder.digest

    assert len({play(seed) for seed in range(20)}) == 1


def test_distinct_samples_are_counted_over_all_ranks_from_the_start_of_each_epoch() -> None:
    recorder = two_ranks()
    shares: list[float | None] = []
    # Two steps an epoch. Rank 1 repeats rank 0's samples in the first epoch, and has its own in the second.
    for step, other in enumerate([[1, 2], [3, 4], [5, 6], [7, 8]], start=1):
        mine = [1, 2] if step % 2 else [3, 4]
        recorder.step(0, state(200 * step, step, step / 2), [], mine)
        (tick,) = ticks(recorder.step(1, state(200 * step, step, step / 2), [], other))
        shares.append(tick["distinct"])
    assert shares == [50.0, 50.0, 100.0, 100.0]
    assert [sample.distinct_pct for sample in recorder.samples][-2:] == [100.0, 100.0]


def test_samples_tell_an_epoch_in_the_order_of_the_one_before() -> None:
    recorder = two_ranks()
    for step in range(1, 7):
        again = [step % 2, 7] if step < 5 else [7, step % 2]
        for rank in range(2):
            recorder.step(rank, state(200 * step, step, step / 2), [], again)
    assert [sample.repeated_pct for sample in recorder.samples[::2]] == [None, None, 100.0, 100.0, 0.0, 0.0]


def test_nothing_trained_is_not_measured_and_a_late_rank_does_not_spoil_the_new_epoch() -> None:
    recorder = two_ranks()
    recorder.step(0, state(350, 1, 1.0), [], [1, 2])
    (early,) = ticks(recorder.step(1, state(350, 1, 1.0), [], [3, 4]))
    assert early["distinct"] is None
    recorder.step(0, state(390, 2, 2.0), [], [1, 2])
    recorder.step(1, state(399, 2, 2.0), [], [1, 2])
    recorder.step(0, state(700, 3, 2.5), [], [3, 4])
    late = ticks(recorder.step(1, state(700, 3, 2.5), [], [3, 4]))
    assert [tick["distinct"] for tick in late] == [50.0, 50.0]
