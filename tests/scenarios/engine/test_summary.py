"""What a run comes to: counts of distinct samples, epoch times measured or extrapolated, gaps where nothing is steady."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.config import RunConfig
from scenarios.serials import SerialSet
from scenarios.summary import Tally, one_gpu_epoch_seconds, sentence, summarise
from scenarios.telemetry import Sample

S = 1_000_000_000


def report(
    step: int, end_s: float, *, steps_per_epoch: int = 4, batch: int = 256, trained: bool = True, memory_gib: float = 20.0
) -> dict[str, Any]:
    return {
        "step": step, "end_ns": round(end_s * S), "progress": step / steps_per_epoch, "steps_per_epoch": steps_per_epoch,
        "batch": batch, "trained": trained, "memory_gib": memory_gib,
    }


def tally(samples_of_rank: list[list[int]], *, steps: int, steps_per_epoch: int = 4) -> Tally:
    """Two ranks that train `samples_of_rank[rank]` again in every step, one second a step."""
    result = Tally(config=RunConfig.parse({"scenario": "sharded", "gpus": 2}))
    for step in range(1, steps + 1):
        for rank in range(2):
            offset = 100 * step
            serials = array("i", [offset + number for number in samples_of_rank[rank]])
            result.step(rank, report(step, float(step), steps_per_epoch=steps_per_epoch), serials)
    return result


def test_distinct_samples_are_counted_over_all_ranks() -> None:
    assert tally([[1, 2], [3, 4]], steps=4).unique_fraction == 1.0
    assert tally([[1, 2], [1, 2]], steps=4).unique_fraction == 0.5


@given(st.lists(st.lists(st.integers(0, 500), max_size=20), max_size=10))
def test_serial_numbers_count_as_a_set_does(batches: list[list[int]]) -> None:
    serials = SerialSet()
    for batch in batches:
        serials.add(array("i", batch))
    assert len(serials) == len({serial for batch in batches for serial in batch})


def test_an_epoch_is_measured_where_it_was_seen_and_extrapolated_elsewhere() -> None:
    seen = tally([[1], [2]], steps=6)
    assert seen.epoch_measured
    assert seen.epoch_seconds == pytest.approx(4.0)
    part = tally([[1], [2]], steps=6, steps_per_epoch=100)
    assert not part.epoch_measured
    assert part.epoch_seconds == pytest.approx(100.0)


def test_the_first_two_steps_are_not_in_the_rate() -> None:
    slow_start = Tally(config=RunConfig.parse({"scenario": "sharded", "gpus": 1}))
    for step, end_s in enumerate([50.0, 90.0, 91.0, 92.0, 93.0], start=1):
        slow_start.step(0, report(step, end_s, steps_per_epoch=10), array("i", range(256)))
    assert slow_start.step_seconds == pytest.approx(1.0)
    assert slow_start.samples_per_second == pytest.approx(256.0)


def test_the_speed_up_compares_epochs_with_one_gpu() -> None:
    summary = summarise(tally([[1], [2]], steps=6), [], outcome="finished", source="virtual", digest="")
    alone_s = one_gpu_epoch_seconds(RunConfig.parse({"scenario": "sharded", "gpus": 2}))
    assert summary["speedup_vs_one_gpu"] == pytest.approx(alone_s / 4, abs=0.01)


def test_out_of_memory_has_no_steady_part() -> None:
    result = tally([[1], [2]], steps=4)
    result.step(0, report(5, 4.5, batch=1024, trained=False, memory_gib=79.0), array("i"))
    summary = summarise(result, [], outcome="out_of_memory", source="virtual", digest="")
    assert summary["samples_per_second"] is None
    assert summary["epoch_seconds"] is None
    assert summary["speedup_vs_one_gpu"] is None
    assert summary["gpus"][0]["gpu_util"] is None
    assert summary["last_batch_that_fitted"] == 256
    assert summary["peak_memory_gib"] == 79.0
    assert "256 was the last that fitted" in sentence(summary)
    assert "Not even the first batch fitted" in sentence({**summary, "last_batch_that_fitted": None})
    assert sentence(summary).startswith("All 2 GPUs filled up together: 79 of 79 GiB.")
    assert sentence({**summary, "gpus": summary["gpus"][:1]}).startswith("The GPU filled up: 79 of 79 GiB.")


def test_a_run_of_a_few_steps_has_means_too() -> None:
    short = Tally(config=RunConfig.parse({"scenario": "sharded", "gpus": 1}))
    for step in range(1, 5):
        short.step(0, report(step, 0.12 * step), array("i", [step]))
    sample = Sample(
        rank=0, end_ns=400_000_000, step=3, epoch=0, epoch_pct=10.0, gpu_util=97.0, sm_active=80.0, spin_pct=0.0, memory_gib=9.0,
        power_w=300.0, learning_rate=0.1, weights_apart=0.0,
    )
    summary = summarise(short, [sample], outcome="finished", source="virtual", digest="")
    assert summary["gpus"][0]["gpu_util"] == 97.0


def summary_of(utils: list[float], **fields: Any) -> dict[str, Any]:
    spins = fields.pop("spins", [0.0] * len(utils))
    gpus = [{"gpu_util": util, "sm_active": util / 4, "spin_pct": spin} for util, spin in zip(utils, spins, strict=True)]
    base = {
        "outcome": "finished", "gpus": gpus, "speedup_vs_one_gpu": 7.0, "replica_checksums": ["a"] * len(utils), "unique_fraction": 1.0,
        "times_trained": 1.0, "steps": 20,
    }
    return {**base, **fields}


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        (summary_of([91.0] + [27.0] * 7), "GPU 0 is busy 91 %"),
        (summary_of([99.0] * 8), "7.0x the speed of one GPU"),
        (summary_of([99.0] * 8, unique_fraction=0.125, times_trained=8.0, speedup_vs_one_gpu=0.9), "each sample is trained 8 times"),
        (summary_of([99.0] * 8, speedup_vs_one_gpu=2.8, spins=[0.0] + [70.0] * 7), "7 of them wait in a kernel for 70 % of it: 2.8x"),
        (summary_of([99.0] * 8, replica_checksums=list("abcdefgh")), "weights no longer agree"),
        (summary_of([40.0] * 8), "idle alike"),
        (summary_of([10.0] + [100.0] * 7), "busy only 10 %"),
    ],
)
def test_the_sentence_says_what_is_seen(summary: dict[str, Any], words: str) -> None:
    assert words in sentence(summary)
