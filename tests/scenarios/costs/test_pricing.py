"""Prices obey what any GPU obeys, and hit the figures the lessons rest on."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.costs import pricing
from scenarios.costs.gpus import GPUS
from scenarios.costs.models import MODELS
from scenarios.costs.pricing import (
    all_reduce_ns,
    gradient_buckets,
    host_copy_ns,
    memory,
    pcie_ns,
    phase,
    power_w,
    step_costs,
)
from scenarios.costs.shapes import StepCosts
from scenarios.costs.tables import program, table_name

_MODELS, _PRECISIONS = st.sampled_from(sorted(MODELS)), st.sampled_from(["fp32", "tf32", "amp"])
_SLOWER_FIRST = st.sampled_from(
    [
        ("v100-16gb", "a100-40gb"), ("a100-40gb", "a100-80gb"), ("a100-80gb", "h100-80gb"), ("h100-80gb", "h200-141gb"),
        ("h200-141gb", "b200-180gb"), ("t4-16gb", "v100-32gb"), ("rtx3090-24gb", "rtx4090-24gb"), ("h100-80gb-pcie", "h100-80gb"),
        ("a100-40gb-pcie", "a100-80gb-pcie"), ("l4-24gb", "rtx4090-24gb"),
    ]
)


def _total_ns(costs: StepCosts) -> int:
    return sum(part.critical_ns for part in (costs.decode, costs.forward, *costs.backward, costs.optimizer))


@settings(max_examples=60, deadline=None)
@given(model=_MODELS, precision=_PRECISIONS, gpus=_SLOWER_FIRST, batch=st.integers(1, 512), world=st.sampled_from([1, 2, 8]))
def test_a_slower_gpu_never_shortens_a_step(model: str, precision: str, gpus: tuple[str, str], batch: int, world: int) -> None:
    slow, fast = (_total_ns(step_costs(model=model, gpu=gpu, precision=precision, batch=batch, world=world)) for gpu in gpus)
    assert slow >= fast


@settings(max_examples=60, deadline=None)
@given(model=_MODELS, precision=_PRECISIONS, gpu=st.sampled_from(sorted(GPUS)), batch=st.integers(1, 512), more=st.integers(1, 512))
def test_a_bigger_batch_never_shortens_a_step_nor_frees_memory(model: str, precision: str, gpu: str, batch: int, more: int) -> None:
    small, large = (step_costs(model=model, gpu=gpu, precision=precision, batch=size, world=8) for size in (batch, batch + more))
    assert _total_ns(large) >= _total_ns(small)
    assert large.decode.busy_ns >= small.decode.busy_ns
    less, greater = (memory(model=model, gpu=gpu, precision=precision, batch=size, world=8).total_gib for size in (batch, batch + more))
    assert greater > less


@settings(max_examples=40, deadline=None)
@given(model=_MODELS, precision=_PRECISIONS, gpu=st.sampled_from(sorted(GPUS)), batch=st.integers(1, 512))
def test_phases_are_whole(model: str, precision: str, gpu: str, batch: int) -> None:
    costs = step_costs(model=model, gpu=gpu, precision=precision, batch=batch, world=8)
    assert len(costs.backward) == len(costs.bucket_bytes)
    assert sum(costs.bucket_bytes) == 4 * program(table_name(model, "finetune"), amp=precision == "amp").parameters
    for part in (costs.forward, *costs.backward, costs.optimizer):
        assert part.kernels > 0
        assert max(part.busy_ns, part.launch_ns) < part.critical_ns <= part.busy_ns + part.launch_ns
        assert 0.0 < part.sm_active <= 1.0


@given(durations=st.lists(st.integers(1, 50_000), min_size=1, max_size=60), launch=st.integers(1, 20_000))
def test_critical_time_is_that_of_a_queue(durations: list[int], launch: int) -> None:
    free = 0
    for index, duration in enumerate(durations, start=1):
        free = max(free, index * launch) + duration
    found = phase([(duration, 0.5) for duration in durations], launch_ns=launch)
    assert (found.critical_ns, found.busy_ns, found.launch_ns) == (free, sum(durations), len(durations) * launch)
    assert found.sm_active == pytest.approx(0.5)


def test_resnet50_on_one_a100_is_as_fast_as_published() -> None:
    costs = step_costs(model="resnet50", gpu="a100-80gb", precision="amp", batch=256, world=1)
    seconds = sum(part.busy_ns for part in (costs.forward, *costs.backward, costs.optimizer)) / 1e9
    assert 256 / seconds == pytest.approx(2470, rel=0.08)
    assert costs.decode.busy_ns / 1e9 == pytest.approx(256 / 7000, rel=0.01)


def test_the_narrow_mlp_is_bound_by_launches() -> None:
    costs = step_costs(model="mlp", gpu="a100-80gb", precision="amp", batch=256, world=8)
    parts = (costs.forward, *costs.backward, costs.optimizer)
    launch = sum(part.launch_ns for part in parts)
    assert 40e6 < launch < 50e6
    assert 0.25 < sum(part.busy_ns for part in parts) / launch < 0.45
    doubled = step_costs(model="mlp", gpu="a100-80gb", precision="amp", batch=512, world=8)
    assert _total_ns(doubled) == pytest.approx(_total_ns(costs), rel=0.02)
    assert costs.decode.kernels == 0


def test_buckets_close_as_ddps_do() -> None:
    buckets = gradient_buckets(program("resnet50", amp=True))
    sizes = [4 * sum(elements) for _, elements in buckets]
    assert sizes[0] >= 2**20
    assert all(size >= 25 * 2**20 for size in sizes[1:-1])
    # The head (8.2 MB) is ready first and is more than the first bucket's limit by itself.
    assert sizes[0] == 4 * (1000 * 2048 + 1000)


def test_ring_formula_and_copies() -> None:
    assert all_reduce_ns(10**9, gpu="a100-80gb", world=1) == 0
    seconds = all_reduce_ns(10**9, gpu="a100-80gb", world=8) / 1e9
    assert 1.0 / seconds * 2 * 7 / 8 == pytest.approx(235, rel=0.03)
    assert all_reduce_ns(0, gpu="a100-80gb", world=8) > 20_000
    assert pcie_ns(25 * 10**9, gpu="a100-80gb") == pytest.approx(1e9, rel=0.01)
    assert host_copy_ns(8 * 10**9) == pytest.approx(1e9, rel=0.01)


@given(gpu=st.sampled_from(sorted(GPUS)), busy=st.floats(0, 1), active=st.floats(0, 1), more=st.floats(0, 1))
def test_power_stays_in_range_and_grows_with_work(gpu: str, busy: float, active: float, more: float) -> None:
    low = power_w(gpu, busy=busy, sm_active=min(active, busy), spinning=0.0)
    assert GPUS[gpu].idle_w <= low <= power_w(gpu, busy=busy, sm_active=max(min(active, busy), more), spinning=0.0) <= GPUS[gpu].peak_w


def test_power_anchors() -> None:
    assert 570 <= power_w("h100-80gb", busy=1.0, sm_active=0.92, spinning=0.0) <= 600
    for name, gpu in GPUS.items():
        assert 0.14 <= power_w(name, busy=1.0, sm_active=0.0, spinning=1.0) / gpu.peak_w <= 0.36


def test_unknown_names_raise_key_errors() -> None:
    for wrong in ({"model": "nope"}, {"gpu": "nope"}, {"precision": "nope"}):
        with pytest.raises(KeyError):
            step_costs(**{"model": "resnet50", "gpu": "a100-80gb", "precision": "amp", "batch": 1, "world": 1} | wrong)
    with pytest.raises(KeyError):
        memory(model="nope", gpu="a100-80gb", precision="amp", batch=1, world=1)


def test_a_second_question_does_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    priced = []
    real = pricing.phase
    monkeypatch.setattr(pricing, "phase", lambda kernels, **options: priced.append(len(kernels)) or real(kernels, **options))
    first, second = (step_costs(model="bert_large", gpu="l4-24gb", precision="tf32", batch=3, world=5) for _ in range(2))
    assert second is first
    assert len(priced) == len(first.backward) + 2
    table = program("bert_large", amp=False)
    assert program("bert_large", amp=False) is table


def test_a_first_call_needs_no_torch() -> None:
    code = (
        "import sys\nfrom scenarios.costs import pricing, predict, validate\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_batch_of_sequences_costs_by_their_mean_length() -> None:
    model = MODELS["bert_large_varied"]
    lengths = [model.length(serial) for serial in range(model.epoch_samples)]
    assert (lengths[0], lengths[-1], lengths) == (32, 384, sorted(lengths))
    assert model.batch_length(range(model.epoch_samples)) == model.seq_len
    assert model.batch_length([0]) == 32
    assert model.batch_length([model.epoch_samples - 1] * 8) == 384
    assert set(model.batch_lengths) >= {model.batch_length([serial]) for serial in range(model.epoch_samples)}
    assert MODELS["bert_large"].batch_length([0]) is None
