"""What rides in the gradient bucket arrives exactly."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from scenarios.worker.data import NumberedSamples, serial_numbers
from scenarios.worker.exchange import Sketch, decode, encode, relative_distance


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=9))
def test_times_survive_as_float_bits(numbers: list[int]) -> None:
    assert decode(encode(numbers)) == numbers
    assert decode(torch.cat([encode(numbers), torch.ones(3)])[: 2 * len(numbers)]) == numbers


def test_a_sketch_estimates_the_distance_of_two_replicas() -> None:
    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(20_000, generator=generator)
    other = weights + 0.05 * torch.randn(20_000, generator=generator)
    true = float((other - weights).norm() / weights.norm())
    estimate = relative_distance(Sketch([other]).take().tolist(), Sketch([weights]).take().tolist())
    assert abs(estimate / true - 1) < 0.4
    assert relative_distance(Sketch([weights]).take().tolist(), Sketch([weights]).take().tolist()) == 0.0


def test_samples_carry_their_serial_number() -> None:
    fetched: list[int] = []
    dataset = NumberedSamples(1000, on_fetch=fetched.append)
    batch = torch.stack([sample for sample, _ in dataset.__getitems__([7, 999, 0])])
    assert serial_numbers(batch) == [7, 999, 0]
    assert fetched == [3]
