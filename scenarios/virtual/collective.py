"""The backward pass of all ranks together: gradient buckets fill, and each bucket's all-reduce overlaps what follows.

A pure function of the ranks' clocks, which every rank evaluates alike after one exchange. A collective starts when the last rank
arrives and ends for all at once; until then the kernel of an early rank is resident and waits (it spins).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scenarios.costs.shapes import Phase, StepCosts


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """One rank's clocks as its backward pass is launched."""

    host_ns: int
    compute_ns: int
    """When the compute stream is free."""
    pace: float
    """Factor on the duration of its kernels (jitter, a slow card)."""
    costs: StepCosts


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    start_ns: int
    end_ns: int
    busy_ns: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BackwardPass:
    """`phases[rank][bucket]` on the compute streams; bucket i's kernel is resident from `phases[rank][i].end_ns` (or the
    end of the collective before) until `collectives[i].end_ns`, and transfers from `collectives[i].start_ns` on."""

    phases: tuple[tuple[Interval, ...], ...]
    collectives: tuple[Interval, ...]


def run_phase(phase: Phase, *, host_ns: int, stream_ns: int, pace: float, slowed_until_ns: int = 0, contention: float = 0.0) -> Interval:
    """Place one phase on a stream that is free at `stream_ns`, launched from `host_ns` on.

    Its kernels take `pace` times as long; until `slowed_until_ns` they take 1 + `contention` times as long again.
    """
    busy_ns = round(phase.busy_ns * pace)
    launched_ns = host_ns + (phase.launch_ns // phase.kernels if phase.kernels else 0)
    start_ns = max(stream_ns, launched_ns if phase.kernels else stream_ns)
    slowed_ns = min(round(busy_ns * (1.0 + contention)), max(0, slowed_until_ns - start_ns))
    busy_ns += slowed_ns - round(slowed_ns / (1.0 + contention))
    end_ns = max(start_ns + busy_ns, host_ns + phase.critical_ns if phase.kernels else start_ns)
    return Interval(start_ns=start_ns, end_ns=end_ns, busy_ns=busy_ns)


def run_backward(arrival: Arrival, *, slowed_until_ns: Callable[[int], int]) -> list[Interval]:
    """Place one rank's backward phases beside collectives of which no end is known.

    `slowed_until_ns` tells from the end of the first phase how long they slow the others down.
    """
    placed: list[Interval] = []
    host_ns, stream_ns, until_ns = arrival.host_ns, arrival.compute_ns, 0
    for phase in arrival.costs.backward:
        placed.append(
            run_phase(
                phase, host_ns=host_ns, stream_ns=stream_ns, pace=arrival.pace, slowed_until_ns=until_ns,
                contention=arrival.costs.contention,
            )
        )
        host_ns += phase.launch_ns
        stream_ns = placed[-1].end_ns
        until_ns = until_ns or slowed_until_ns(stream_ns)
    return placed


def backward_together(arrivals: Sequence[Arrival], *, comm_ns: int, all_reduce_ns: Sequence[int]) -> BackwardPass:
    """Place the backward phases of all ranks and the all-reduce of each bucket.

    `comm_ns`: when the communication streams are free (the same on all ranks). `all_reduce_ns`: duration of each bucket's transfer.
    """
    phases: list[list[Interval]] = [[] for _ in arrivals]
    hosts_ns = [arrival.host_ns for arrival in arrivals]
    streams_ns = [arrival.compute_ns for arrival in arrivals]
    collectives: list[Interval] = []
    alone = len(arrivals) == 1
    for bucket, transfer_ns in enumerate(all_reduce_ns):
        for rank, arrival in enumerate(arrivals):
            phase = arrival.costs.backward[bucket]
            placed = run_phase(
                phase, host_ns=hosts_ns[rank], stream_ns=streams_ns[rank], pace=arrival.pace,
                slowed_until_ns=collectives[-1].end_ns if collectives and not alone else 0, contention=arrival.costs.contention,
            )
            phases[rank].append(placed)
            hosts_ns[rank] += phase.launch_ns
            streams_ns[rank] = placed.end_ns
        start_ns = max(comm_ns, *streams_ns)
        comm_ns = start_ns if alone else start_ns + transfer_ns
        collectives.append(Interval(start_ns=start_ns, end_ns=comm_ns, busy_ns=comm_ns - start_ns))
    return BackwardPass(phases=tuple(map(tuple, phases)), collectives=tuple(collectives))
