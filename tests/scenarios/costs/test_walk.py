"""The committed tables are what a walk of the architectures gives, also at sizes they were not made from."""

from __future__ import annotations

import pytest

from scenarios.costs.architectures import ARCHITECTURES
from scenarios.costs.optimizers import optimizer_launches
from scenarios.costs.tables import program, terms, value
from scenarios.costs.walk import Step, walk

_BATCH, _LENGTH = 12, 320


@pytest.mark.parametrize("amp", [True, False], ids=["amp", "float"])
@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_committed_table_equals_a_fresh_walk(name: str, amp: bool) -> None:
    step = walk(name, amp=amp, batch=_BATCH, seq_len=_LENGTH)
    table = program(name, amp=amp)
    powers = terms(batch=_BATCH, seq_len=_LENGTH if ARCHITECTURES[name].has_sequences else None)
    for ids, kernels in ((table.forward, step.forward), (table.backward, step.backward)):
        priced = [
            (kind.op_class, kind.half, round(value(kind.flops, powers)), round(value(kind.bytes, powers)))
            for kind in (table.kinds[index] for index in ids)
        ]
        assert priced == [(kernel.op_class, kernel.dtype == "half", kernel.flops, kernel.bytes) for kernel in kernels]
    assert list(table.ready) == step.ready
    assert round(max(value(moment, powers) for moment in table.alive)) == max(step.alive)
    assert list(table.optimizer) == optimizer_launches(ARCHITECTURES[name].optimizer, step.sizes)


def _flops(step: Step) -> tuple[int, int]:
    return sum(kernel.flops for kernel in step.forward), sum(kernel.flops for kernel in step.backward)


def test_resnet50_has_the_operations_and_parameters_of_the_literature() -> None:
    step = walk("resnet50", amp=True, batch=1, seq_len=0)
    forward, backward = _flops(step)
    assert sum(step.sizes) == 25_557_032
    assert forward == pytest.approx(8.18e9, rel=0.01)  # 4.09 GMACs
    assert backward == pytest.approx(2 * forward, rel=0.03)  # the first convolution needs no gradient of the images


def test_grouped_convolutions_cost_twice_the_forward_pass_in_backward() -> None:
    forward, backward = _flops(walk("resnext101_32x8d", amp=False, batch=1, seq_len=0))
    assert backward == pytest.approx(2 * forward, rel=0.03)


def test_mixed_precision_keeps_half_of_most_activations() -> None:
    half, full = (max(walk("resnet50", amp=amp, batch=8, seq_len=0).alive) for amp in (True, False))
    assert 0.45 < half / full < 0.65
