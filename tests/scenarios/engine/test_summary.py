"""What a run comes to: counts of distinct samples, epoch times measured or extrapolated, gaps where nothing is steady."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.config import RunConfig
from scenarios.record import tick_of
from scenarios.seen import hang_sentence, sentence
from scenarios.serials import SerialSet
from scenarios.summary import Tally, one_gpu_epoch_seconds, summarise
from scenarios.telemetry import Sample

S = 1_000_000_000


def report(
    step: int, end_s: float, *, steps_per_epoch: int = 4, batch: int = 256, trained: bool = True, memory_gib: float = 20.0
) -> dict[str, Any]:
    return {
        "step": step, "end_ns": round(end_s * S), "progress": step / steps_per_epoch, "steps_per_epoch": steps_per_epoch,
        "batch": batch, "trained": trained, "memory_gib": memory_gib, "spans": [],
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


def test_the_order_of_the_second_epoch_is_compared_with_the_first() -> None:
    def pct(rank_1_again: list[int], *, steps: int = 4) -> float | None:
        two = Tally(config=RunConfig.parse({"scenario": "sharded", "gpus": 2}))
        for step in range(1, steps + 1):
            mine, theirs = [step % 2, 7], [10 + step % 2, 17] if step < 3 else rank_1_again
            two.step(0, report(step, float(step), steps_per_epoch=2), array("i", mine))
            two.step(1, report(step, float(step), steps_per_epoch=2), array("i", theirs))
        return two.order_repeated_pct

    assert pct([11, 17]) == 75.0, "of rank 1's steps one in two"
    assert pct([17, 11]) == 50.0, "the same samples in another order"
    assert pct([11, 17], steps=3) is None, "the second epoch is not over"


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


def test_the_gpus_of_a_run_that_hung_are_described_as_they_hung() -> None:
    result = tally([[1], [2]], steps=4)
    samples = [
        Sample(
            rank=rank, end_ns=period * 200_000_000, step=4, epoch=0, epoch_pct=10.0, gpu_util=100.0 if rank or period <= 20 else 0.0,
            sm_active=15.0, spin_pct=99.0 if rank and period > 20 else 0.0, memory_gib=9.0, power_w=140.0, learning_rate=0.1,
            weights_apart=0.0,
        )
        for period in range(1, 36) for rank in (0, 1)
    ]  # fmt: skip
    summary = summarise(result, samples, outcome="timeout", source="virtual", digest="")
    assert [(gpu["gpu_util"], gpu["spin_pct"]) for gpu in summary["gpus"]] == [(0.0, 0.0), (100.0, 99.0)]
    assert summary["samples_per_second"] is None
    said = "GPU 1 shows 100 % at 140 W: it waits in a kernel for GPU 0, at 0 %, which never comes. After 3 s of that the watchdog ended"
    assert hang_sentence(summary, 3.0) == f"{said} the run."
    busy = {**summary, "gpus": [gpu | {"gpu_util": 90.0} for gpu in summary["gpus"]]}
    assert hang_sentence(busy, 3.0) is None
    assert hang_sentence({**summary, "gpus": [gpu | {"gpu_util": None} for gpu in summary["gpus"]]}, 3.0) is None


def test_ranks_with_fewer_batches_do_not_make_an_epoch_shorter() -> None:
    result = Tally(config=RunConfig.parse({"scenario": "sharded", "gpus": 2}))
    for rank, steps in ((1, 6), (0, 4)):
        result.step(rank, report(1, 1.0, steps_per_epoch=steps), array("i", [rank]))
    assert result.steps_per_epoch == 6
    for rank in (1, 0):
        result.step(rank, report(2, 2.0, steps_per_epoch=3), array("i", [rank]))
    assert result.steps_per_epoch == 3, "a batch that doubles makes it shorter"


def test_a_job_is_as_far_as_its_last_rank() -> None:
    result = Tally(config=RunConfig.parse({"scenario": "sharded", "gpus": 2}))
    assert result.progress == 0
    for step in range(1, 5):
        for rank, steps in ((0, 2), (1, 4)):
            result.step(rank, report(step, float(step), steps_per_epoch=steps), array("i", [step]))
    assert result.progress == 1.0, "rank 0 has half as many batches, and trains its second epoch already"

    def sample(rank: int, epoch: int, pct: float) -> Sample:
        zero = {"gpu_util": 0.0, "sm_active": 0.0, "spin_pct": 0.0, "memory_gib": 1.0, "power_w": 60.0, "learning_rate": None}
        return Sample(rank=rank, end_ns=S, step=4, epoch=epoch, epoch_pct=pct, weights_apart=None, **zero)

    tick = tick_of([sample(0, 1, 100.0), sample(1, 1, 54.0)])
    assert (tick["epoch"], tick["epoch_pct"]) == (1, 54.0)
    assert tick_of([sample(0, 0, 0.0), sample(1, 0, 7.0)])["epoch_pct"] == 7.0, "one that has told nothing yet does not hold it back"


def test_an_all_reduce_costs_what_no_kernel_hides() -> None:
    result = Tally(config=RunConfig.parse({"scenario": "sharded", "gpus": 1}))
    for step in range(1, 7):
        zero = (step - 1) * S
        work = [[0, "compute", "backward", step, zero, zero + S // 2, S // 4, 0.9]]
        moved = [[0, "comm", "all_reduce", step, zero + S // 4 * start, zero + S // 4 * (start + 1), S // 4, 0.1] for start in (0, 1, 2)]
        result.step(0, report(step, float(step)) | {"spans": [*work, *moved]}, array("i", [step]))
    assert result.exposed_pct(0) == pytest.approx(50.0), "two quarters under kernels that fill half of them, and one under none"
    assert result.exposed_pct(1) is None


def test_the_speed_up_compares_epochs_with_one_gpu() -> None:
    summary = summarise(tally([[1], [2]], steps=6), [], outcome="finished", source="virtual", digest="")
    alone_s = one_gpu_epoch_seconds(RunConfig.parse({"scenario": "sharded", "gpus": 2}))
    assert summary["speedup_vs_one_gpu"] == pytest.approx(alone_s / 4, abs=0.01)


def test_out_of_memory_has_no_steady_part() -> None:
    result = tally([[1], [2]], steps=4)
    for rank in range(2):
        result.step(rank, report(5, 4.5, batch=1024, trained=False, memory_gib=79.0), array("i"))
    summary = summarise(result, [], outcome="out_of_memory", source="virtual", digest="")
    assert summary["samples_per_second"] is None
    assert summary["epoch_seconds"] is None
    assert summary["speedup_vs_one_gpu"] is None
    assert summary["gpus"][0]["gpu_util"] is None
    assert summary["last_batch_that_fitted"] == 256
    assert summary["peak_memory_gib"] == 79.0
    assert "256 was the last that fitted" in sentence(summary)
    alone = [{"rank": rank, "peak_memory_gib": 70.0 + 9 * (rank == 0)} for rank in range(2)]
    some = sentence({**summary, "gpus": alone, "out_of_memory_ranks": [0]})
    assert some.startswith("GPU 0 alone filled up: 79 of 79 GiB.")
    assert "Not even the first batch fitted" in sentence({**summary, "last_batch_that_fitted": None})
    assert sentence(summary).startswith("Both GPUs filled up together: 79 of 79 GiB.")
    assert sentence({**summary, "gpus": summary["gpus"][:1]}).startswith("The GPU filled up: 79 of 79 GiB.")
    one = [{**gpu, "peak_memory_gib": (30.0, 79.0)[gpu["rank"]]} for gpu in summary["gpus"]]
    assert sentence({**summary, "gpus": one}).startswith("GPU 1 alone filled up: 79 of 79 GiB.")


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
    exposed = fields.pop("exposed", 2.0)
    gpus = [
        {"rank": rank, "gpu_util": util, "sm_active": util / 4, "spin_pct": spin, "exposed_pct": exposed, "memory_gib": 13.2}
        for rank, (util, spin) in enumerate(zip(utils, spins, strict=True))
    ]
    base = {
        "outcome": "finished", "gpus": gpus, "speedup_vs_one_gpu": 7.0, "replica_checksums": ["a"] * len(utils), "unique_fraction": 1.0,
        "times_trained": 1.0, "steps": 20, "order_repeated_pct": 0.0, "wait_windows": None,
    }
    return {**base, **fields}


def test_the_sentence_says_whose_memory_others_hold() -> None:
    summary = summary_of([99.0] * 8)
    for gpu in summary["gpus"]:
        gpu |= {"rank": 0, "processes": 1, "memory_gib": 13.2}
    summary["gpus"][0] |= {"processes": 8, "memory_gib": 16.7}
    assert "But 8 processes hold memory on GPU 0: 16.70 GiB, against 13.20 GiB on the others." in sentence(summary)


def test_the_sentence_says_that_the_late_gpu_holds_more() -> None:
    summary = summary_of([99.0] * 4, spins=[70.0, 50.0, 11.0, 0.1])
    for gpu, memory_gib in zip(summary["gpus"], [10.9, 14.0, 26.0, 34.7], strict=True):
        gpu["memory_gib"] = memory_gib
    said = sentence(summary)
    assert "2 of them wait in a kernel for GPU 3, 60 % of it" in said
    assert said.endswith("GPU 3 holds 35 GiB, the others 11 to 26.")


def windows(busy_pct: float) -> dict[str, Any]:
    return {"rank": 0, "count": 4, "share_pct": 30.0, "busy_pct": busy_pct}


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        (summary_of([91.0] + [27.0] * 7), "GPU 0 is busy 91 %"),
        (summary_of([99.0] * 8), "7.0x the speed of one GPU"),
        (summary_of([99.0] * 8, unique_fraction=0.125, times_trained=8.0, speedup_vs_one_gpu=0.9), "each sample is trained 8 times"),
        (summary_of([99.0] * 8, speedup_vs_one_gpu=2.8, spins=[0.0] + [70.0] * 7), "7 of them wait in a kernel for GPU 0, 70 % of it"),
        (summary_of([99.0] * 8, speedup_vs_one_gpu=4.1, exposed=40.0), "for 40 % of it they only exchange gradients: 4.1x"),
        (summary_of([99.0] * 8, replica_checksums=list("abcdefgh")), "weights no longer agree"),
        (summary_of([40.0] * 8), "idle alike: busy 40 % of the time, and then with useful work on 25 % of their cores: 7.0x the speed"),
        (summary_of([99.0] * 8, order_repeated_pct=100.0), "the second epoch brought them in the order of the first"),
        (summary_of([10.0] + [100.0] * 7), "busy only 10 %"),
        (summary_of([65.0] + [100.0] * 7, wait_windows=windows(2.0)), "4 times GPU 0 stands still while the other 7 wait for it"),
        (summary_of([96.0, 100.0], wait_windows=windows(90.0)), "GPU 0 is busy alone while the other one waits for it in a kernel, 30 %"),
        (summary_of([91.0, 27.0]), "the other one waits for 73 % of it"),
        (summary_of([99.0, 99.0]), "Both GPUs are busy 99 %"),
        (summary_of([99.0, 99.0], spins=[40.0, 0.0]), "but one of them waits in a kernel for GPU 1, 40 % of it"),
    ],
)
def test_the_sentence_says_what_is_seen(summary: dict[str, Any], words: str) -> None:
    assert words in sentence(summary)
