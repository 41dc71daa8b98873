"""The arithmetic of busy time: weighted by time, nothing missed, whatever the driver's clock and sample period."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.nvml.utilization import Busy

PERIOD_US = 200_000


def test_a_period_is_the_time_weighted_mean_of_the_samples_in_it() -> None:
    busy = Busy(0)
    busy.add([(150_000, 100.0), (300_000, 0.0), (450_000, 40.0)], 450_000)
    assert busy.mean(0, 200_000) == 75.0  # 150 ms at 100, 50 ms at 0
    assert busy.mean(200_000, 400_000) == 20.0  # 100 ms at 0, 100 ms at 40
    assert busy.mean(400_000, 600_000) == 40.0, "the known quarter of it"
    assert busy.mean(600_000, 800_000) is None, "not 0"


def test_old_samples_repeated_and_nonsense_change_nothing() -> None:
    busy = Busy(0)
    busy.add([(100_000, 50.0), (200_000, 50.0)], 200_000)
    busy.add([(200_000, 90.0), (100_000, 90.0)], 250_000)
    busy.add([(300_000, 4e9)], 300_000)
    assert busy.mean(0, 200_000) == 50.0
    assert busy.mean(200_000, 300_000) is None


def test_a_sample_after_a_long_silence_does_not_speak_for_the_silence() -> None:
    busy = Busy(0)
    busy.add([(100_000, 10.0), (200_000, 10.0)], 200_000)
    busy.add([(9_000_000, 100.0), (9_100_000, 100.0)], 9_100_000)
    assert busy.mean(0, 200_000) == 10.0
    assert busy.mean(4_000_000, 4_200_000) is None
    assert busy.mean(8_900_000, 9_100_000) == 100.0


def test_a_clock_that_is_set_while_sampling_moves_nothing_of_the_past() -> None:
    busy = Busy(1_000_000)
    busy.add([(1_100_000, 30.0), (1_200_000, 30.0)], 1_200_000)
    busy.add([(90_000_000, 60.0), (90_100_000, 60.0)], 1_400_000)
    assert busy.mean(1_000_000, 1_200_000) == 30.0
    assert busy.mean(1_200_000, 1_400_000) == 60.0


def test_stand_ins_fill_a_silence_and_give_way_to_samples() -> None:
    busy = Busy(0)
    assert not busy.dry(1_000_000)
    assert busy.dry(1_200_000)
    busy.stand_in(7.0, 1_200_000, 0)
    assert busy.dry(1_300_000), "it stays so until a sample comes"
    busy.stand_in(7.0, 1_300_000, 1_200_000)
    busy.add([(5_300_000, 99.0), (5_400_000, 99.0)], 1_400_000)
    assert not busy.dry(1_500_000)
    assert [busy.mean(n * PERIOD_US, (n + 1) * PERIOD_US) for n in range(7)] == [7.0] * 6 + [53.0]


@settings(max_examples=60, deadline=None)
@given(
    sample_us=st.integers(20_000, 1_000_000) | st.sampled_from([20_000, 100_000, 125_000, 500_000]),
    base=st.sampled_from([10**6, 10**9, 1_700_000_000_000_000]),
    values=st.lists(st.integers(0, 100), min_size=40, max_size=40), tick_us=st.sampled_from([50_000, 100_000, 250_000]),
)  # fmt: skip
def test_nothing_is_lost_or_counted_twice(sample_us: int, base: int, values: list[int], tick_us: int) -> None:
    """However often one looks, the busy time of the whole is that of the samples."""
    busy = Busy(0)
    busy.add([(base, 0.0)], 0)  # what the history held before; it arrives at once, so the clocks' distance is known
    end_us = sample_us * len(values)
    for now_us in range(tick_us, end_us + 2 * tick_us, tick_us):
        samples = [(base + (n + 1) * sample_us, float(value)) for n, value in enumerate(values) if (n + 1) * sample_us <= now_us]
        busy.add(samples, now_us)
    periods = [busy.mean(start, start + PERIOD_US) for start in range(0, end_us, PERIOD_US)]
    assert all(value is None or 0 <= value <= 100 for value in periods)
    whole = busy.mean(0, end_us)
    assert whole == pytest.approx(sum(values) / len(values), abs=1e-6)
    if end_us % PERIOD_US == 0:
        assert sum(value or 0 for value in periods) / len(periods) == pytest.approx(whole, abs=1e-6)
