"""Readings and steps arrive in their own time and become one stream of samples."""

from __future__ import annotations

from typing import Any

import pytest

from scenarios.config import RunConfig
from scenarios.measured_recorder import MeasuredRecorder
from scenarios.nvml.sampling import RunTime
from scenarios.recorder import StepState

PERIOD_NS = 200_000_000


def recorder(gpus: int = 2) -> MeasuredRecorder:
    return MeasuredRecorder(RunConfig.parse({"scenario": "sharded", "gpus": gpus, "backend": "cuda"}))


def state(step: int, end_ns: int) -> StepState:
    return StepState(end_ns=end_ns, step=step, progress=step / 10, learning_rate=0.1, memory_gib=1.0, apart=0.0)


def read(util: float) -> dict[str, Any]:
    return {"gpu_util": util, "sm_active": None, "memory_gib": 8.0, "power_w": 300.0, "processes": 1}


def ticks(outgoing: list[Any]) -> list[tuple[int, list[float | None], int]]:
    return [(each.data["t_ms"], each.data["util"], each.data["step"]) for each in outgoing if each.event == "tick"]


def test_a_period_is_shown_when_all_gpus_were_read_and_all_ranks_have_passed_it() -> None:
    record = recorder()
    assert ticks(record.step(0, state(1, 150_000_000), [])) == []
    assert ticks(record.reading(0, PERIOD_NS, read(80))) == []
    assert ticks(record.reading(1, PERIOD_NS, read(20))) == []
    assert ticks(record.step(0, state(2, 300_000_000), [])) == []
    assert ticks(record.step(1, state(1, 250_000_000), [])) == [(200, [80, 20], 1)]


def test_a_rank_that_waits_in_a_collective_does_not_stop_the_picture() -> None:
    """Its steps stop, its GPU reads 100 %: that is what a hang looks like."""
    record = recorder()
    shown = [*record.step(0, state(1, 150_000_000), []), *record.step(1, state(1, 150_000_000), [])]
    for number in range(1, 20):
        shown += record.reading(0, number * PERIOD_NS, read(0)) + record.reading(1, number * PERIOD_NS, read(100))
    assert [util for _, util, _ in ticks(shown)] == [[0, 100]] * 9, "two seconds behind"
    assert len(ticks(record.finish(broke_off=True))) == 10, "then all that was read"


def test_nothing_is_shown_after_the_last_step_of_a_run_that_finished() -> None:
    record = recorder(1)
    shown = record.step(0, state(1, 450_000_000), [])
    for number in range(1, 6):
        shown += record.reading(0, number * PERIOD_NS, read(90))
    assert len(ticks(shown + record.finish(broke_off=False))) == 2


def test_a_lost_gpu_is_a_gap_with_a_message() -> None:
    record = recorder()
    for rank in (0, 1):
        record.step(rank, state(1, 900_000_000), [])
    record.reading(0, PERIOD_NS, read(90))
    assert ticks(record.reading(1, PERIOD_NS, read(90))) == [(200, [90, 90], 0)]
    lane = record.lose(1, "GPU 1 fell off the bus.")
    assert (lane[0].event, lane[0].data["rank"]) == ("lane", 1)
    assert ticks(record.reading(0, 2 * PERIOD_NS, read(90))) == [(400, [90, None], 0)]
    assert record.lanes == {1: "GPU 1 fell off the bus."}
    assert [sample.processes for sample in record.samples] == [1, 1, 1, None]


@pytest.mark.parametrize("first", [0, 1])
def test_weights_apart_come_from_sketches_of_one_step_whoever_is_first(first: int) -> None:
    record = recorder()
    for rank in (first, 1 - first):
        record.distances.take(rank, 4, [3.0, 4.0 + rank])
    assert record.distances.latest == [0.0, pytest.approx(0.2)]
    record.distances.take(1, 8, [float("nan"), 1.0])
    record.distances.take(0, 8, [1.0, 1.0])
    for rank in (0, 1):
        record.step(rank, state(9, 900_000_000), [])
    shown = record.reading(0, PERIOD_NS, read(1)) + record.reading(1, PERIOD_NS, read(1))
    assert shown[0].data["apart"] == [0.0, None], "no number is a gap"


def test_a_sampler_s_periods_are_put_on_the_run_s_time() -> None:
    time = RunTime()
    start = {"event": "start", "unix_ns": 10_000_000_000}
    early = [{"event": "tick", "end_ns": number * PERIOD_NS, "gpus": []} for number in range(1, 4)]
    assert time.take(start) == [start]
    assert [time.take(event) for event in early] == [[], [], []]
    assert [event["end_ns"] for event in time.begin(10_000_000_000 + 2 * PERIOD_NS)] == [PERIOD_NS]
    assert time.take({"event": "tick", "end_ns": 4 * PERIOD_NS, "gpus": []})[0]["end_ns"] == 2 * PERIOD_NS
