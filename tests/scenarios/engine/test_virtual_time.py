"""The parts of virtual time: a phase of kernels on its stream, the loader's queue."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scenarios.costs.shapes import Phase
from scenarios.virtual.collective import run_phase
from scenarios.virtual.loader import LoaderQueue


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


@given(workers=st.integers(1, 32), batches=st.integers(1, 100))
def test_workers_are_under_way_from_the_start(workers: int, batches: int) -> None:
    queue = LoaderQueue(workers=workers)
    taken = [queue.take(0, 32_000) for _ in range(batches)]
    assert all(abs(at_ns - index * 32_000 / workers) <= 1 for index, at_ns in enumerate(taken)), "as many a second as later on"
