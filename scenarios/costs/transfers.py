"""What copies, collectives and watts cost on a displayed GPU.

Owns time on links and the power model. Must not import torch.
"""

from __future__ import annotations

from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS, NETWORKS, Link

_COPY_SETUP_NS = 10_000
"""Host call, engine start and completion of one cudaMemcpyAsync: about 10 us for a copy of a few bytes."""
_HOST_COPY_BYTES_PER_NS = 8.0
"""One core's memcpy between buffers larger than its caches on a server CPU: 8-12 GB/s."""
_HOST_COPY_SETUP_NS = 2_000
_PROTOCOL_NS = 6_000
"""Launch and set-up of one NCCL collective before the first bytes move."""

_NVLS_RANKS = 4
"""NCCL sums in the switches from so many GPUs of a node on; with fewer a ring sends no more bytes."""
_NVLS_STEPS = 8
"""Set-up and synchronisation of a sum in the switches, in steps of a ring: our estimate. Small messages go round a ring, as in NCCL."""

_RESIDENT_SHARE = 0.13
_ACTIVE_SHARE = 0.75
"""Shares of the range from idle to the limit that a resident kernel and useful work draw. Anchors: a rank that spins in NCCL draws
14-36 % of its limit, a healthy one 44-85 %; an H100 at 0.92 SM activity 570-600 of 700 W (guilbaults/slurm-job-exporter#30)."""


def link_of(gpu: str, link: str = "") -> Link:
    """The link that joins `gpu`s of one node: their own, or `link`. Unknown names raise KeyError."""
    return LINKS[link or GPUS[gpu].link]


def all_reduce_ns(nbytes: int, *, gpu: str, world: int, link: str = "", nodes: int = 1, network: str = "") -> int:
    """Duration of one all-reduce of `nbytes` among `world` GPUs, once the last has arrived; 0 for one GPU.

    `world` counts all GPUs, spread evenly over `nodes` that `network` joins: first inside each node, then across, as NCCL does. Inside a
    node it is a ring, or the switches add up where the link has NVLink SHARP and that is faster. Unknown names raise KeyError.
    """
    if world <= 1:
        return 0
    inside = _in_node_ns(nbytes, link_of(gpu, link), world // nodes)
    across = _ring_ns(nbytes, NETWORKS[network], nodes) if nodes > 1 else 0.0
    return round(_PROTOCOL_NS + inside + across)


def collective_ns(nbytes: int, *, gpu: str, world: int, link: str = "") -> int:
    """Duration of one broadcast from a GPU of the node to all, or of one sum on it: each GPU passes the bytes on once."""
    joined = link_of(gpu, link)
    return round(_PROTOCOL_NS + (world - 1) * joined.latency_us * 1e3 + nbytes / joined.bus_gb_s) if world > 1 else 0


def _in_node_ns(nbytes: int, joined: Link, ranks: int) -> float:
    ring = _ring_ns(nbytes, joined, ranks)
    if joined.nvls_gb_s is None or ranks < _NVLS_RANKS:
        return ring
    # Every GPU sends its bytes to the switch once and receives the sum once, however many there are; nccl-tests states eight GPUs' rate as
    # if they had gone round a ring.
    switched = _NVLS_STEPS * joined.latency_us * 1e3 + nbytes * (2 * 7 / 8) / joined.nvls_gb_s
    return min(ring, switched)


def _ring_ns(nbytes: int, joined: Link, ranks: int) -> float:
    """Each rank sends 2 (n-1)/n of the bytes in 2 (n-1) steps at the bus bandwidth (nccl-tests, PERFORMANCE.md)."""
    if ranks <= 1:
        return 0.0
    steps = 2 * (ranks - 1)
    return steps * joined.latency_us * 1e3 + steps / ranks * nbytes / joined.bus_gb_s


def pcie_ns(nbytes: int, *, gpu: str) -> int:
    """Duration of one pinned copy of `nbytes` between host and GPU, either way."""
    return round(_COPY_SETUP_NS + nbytes / GPUS[gpu].pcie_gb_s)


def host_copy_ns(nbytes: int) -> int:
    """Duration of one memcpy of `nbytes` by one host thread, through shared memory."""
    return round(_HOST_COPY_SETUP_NS + nbytes / _HOST_COPY_BYTES_PER_NS)


def power_w(gpu: str, *, busy: float, sm_active: float, spinning: float) -> float:
    """Mean power over a period, in watts.

    All shares are of the period, 0..1: `busy` any kernel resident (spinning included), `sm_active` the mean share of SMs at useful work,
    `spinning` only a waiting collective resident.
    """
    card = GPUS[gpu]
    share = _RESIDENT_SHARE * max(busy, spinning) + _ACTIVE_SHARE * sm_active
    return card.idle_w + (card.peak_w - card.idle_w) * min(1.0, share)
