"""The physics of virtual time, as properties over random configurations; no process is started."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.costs import pricing
from scenarios.costs.shapes import Phase
from scenarios.telemetry import Span
from scenarios.virtual.collective import run_phase
from scenarios.virtual.device import DeviceSetup, VirtualDevice
from scenarios.virtual.loader import LoaderQueue
from scenarios.virtual.simulate import step_seconds

CASES: dict[str, Any] = {
    "model": st.sampled_from(["resnet50", "bert_large", "mlp"]),
    "gpu": st.sampled_from(["v100-32gb", "a100-80gb", "h100-80gb"]),
    "batch": st.sampled_from([1, 8, 64, 256]),
    "world": st.integers(1, 8),
    "seed": st.integers(0, 50),
}


def simulate(*, model: str, gpu: str, batch: int, world: int, seed: int, steps: int = 5) -> tuple[list[Span], list[list[int]]]:
    """All spans of a sharded run, and every rank's compute clock after each backward pass."""
    costs = pricing.step_costs(model=model, gpu=gpu, precision="amp", batch=batch, world=world)
    spans: list[Span] = []
    devices = [
        VirtualDevice(
            DeviceSetup(rank=rank, world=world, gpu=gpu, model=model, seed=seed, workers=4, decode_on_gpu=True, loaders=world),
            spans.append,
        )
        for rank in range(world)
    ]
    left: list[list[int]] = []
    for _ in range(steps):
        for device in devices:
            device.load(batch)
            device.decode(costs)
            device.forward(costs)
        arrivals = [device.arrival(costs) for device in devices]
        for device in devices:
            device.backward(arrivals)
        left.append([device.comm_ns for device in devices])
        for device in devices:
            device.optimizer(costs)
    return spans, left


@settings(max_examples=40, deadline=None)
@given(**CASES)
def test_spans_of_one_stream_never_overlap(model: str, gpu: str, batch: int, world: int, seed: int) -> None:
    spans, _ = simulate(model=model, gpu=gpu, batch=batch, world=world, seed=seed)
    last: dict[tuple[int, str], int] = {}
    for span in spans:
        key = (span.rank, span.stream)
        assert span.start_ns >= last.get(key, 0)
        assert 0 <= span.busy_ns <= span.end_ns - span.start_ns
        last[key] = span.end_ns


@settings(max_examples=40, deadline=None)
@given(**CASES)
def test_all_leave_a_collective_together_and_none_before_the_last_arrived(
    model: str, gpu: str, batch: int, world: int, seed: int
) -> None:
    spans, left = simulate(model=model, gpu=gpu, batch=batch, world=world, seed=seed)
    for clocks in left:
        assert len(set(clocks)) == 1
    transfers: dict[int, dict[int, list[Span]]] = {}
    for span in spans:
        if span.kind == "all_reduce":
            transfers.setdefault(span.step, {}).setdefault(span.rank, []).append(span)
    for by_rank in transfers.values():
        edges = {tuple((span.start_ns, span.end_ns) for span in rank_spans) for rank_spans in by_rank.values()}
        assert len(edges) == 1


@settings(max_examples=30, deadline=None)
@given(**CASES)
def test_more_ranks_never_shorten_a_step(model: str, gpu: str, batch: int, world: int, seed: int) -> None:
    alone = step_seconds(model=model, gpu=gpu, precision="amp", batch=batch, world=1, seed=seed)
    together = step_seconds(model=model, gpu=gpu, precision="amp", batch=batch, world=world, seed=seed)
    assert together >= alone * 0.999


@given(
    kernels=st.integers(1, 500), kernel_ns=st.integers(1000, 100_000), launch_ns=st.integers(1000, 20_000),
    host_ns=st.integers(0, 10**9), stream_ns=st.integers(0, 10**9),
)
def test_a_phase_is_bound_by_its_kernels_or_by_its_launches(
    kernels: int, kernel_ns: int, launch_ns: int, host_ns: int, stream_ns: int
) -> None:
    end = stream_ns
    for kernel in range(kernels):
        end = max(end, host_ns + (kernel + 1) * launch_ns) + kernel_ns
    critical_ns = max((kernel + 1) * launch_ns + (kernels - kernel) * kernel_ns for kernel in range(kernels))
    phase = Phase(
        kernels=kernels, busy_ns=kernels * kernel_ns, launch_ns=kernels * launch_ns, critical_ns=critical_ns, sm_active=0.5
    )
    assert run_phase(phase, host_ns=host_ns, stream_ns=stream_ns, pace=1.0).end_ns == end


@given(fetch_ns=st.lists(st.integers(1, 1000), min_size=1, max_size=60), workers=st.integers(1, 8))
def test_batches_come_in_order_and_no_worker_fetches_two_at_once(fetch_ns: list[int], workers: int) -> None:
    queue = LoaderQueue(workers=workers)
    taken = [queue.take(0, duration) for duration in fetch_ns]
    assert taken == sorted(taken) or workers > 1
    assert taken[0] == 0, "the first batch is there when virtual time begins"
    assert (max(taken) + fetch_ns[0]) * workers >= sum(fetch_ns), "workers cannot do more work than time allows"
