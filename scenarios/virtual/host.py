"""The host that the GPUs of one node share: what its loader workers, memory and PCIe switches cost, and how ranks slow each other.

Owns the host's figures and their contention. What is not sourced is our own assumption, and says so; none is fitted. Must not hold clocks.
Every figure grows with the ranks of the host or stays: more ranks never make the host faster.

Launching a kernel costs the same however many ranks there are (`Gpu.launch_us`): each training process is taken to keep a core of its
own, and loader workers that outnumber the cores take turns among themselves. That, too, is our assumption.
"""

from __future__ import annotations

from functools import lru_cache

from scenarios.costs.gpus import GPUS
from scenarios.costs.links import LINKS
from scenarios.costs.models import MODELS

HOST_CORES = 64
"""Physical cores of the host. Our assumption: eight-GPU machines have from 40 (DGX-1) over 48 (AWS p4d) to 128 (DGX A100)."""

BUSY_HOST_SLOWING = 0.3
"""By how much one core is slower when all are busy than when it works alone. Our assumption, after the clocks of a
DGX A100's EPYC 7742: 3.4 GHz boost of one core, 2.25 GHz base; an all-core load runs between the two."""

ROW_NS = 20_000
"""Taking one sample from a data set in memory, and its part of collating a batch, in Python. Our assumption."""

FILE_LATENCY_NS = 500_000
"""Opening and reading a small file of the storage that a cluster shares. AWS gives 0.25 ms as the lowest read latency of EFS and
"sub-millisecond" for FSx for Lustre; half a millisecond is our assumption. A page cache would take a tenth."""

FILE_BYTES_PER_NS = 1.0
"""Bandwidth of one reader of that storage, 1 GB/s. Our assumption."""

FILE_WRITE_BYTES_PER_NS = 0.2
"""One process that pickles a checkpoint and writes it to that storage, 200 MB/s. Our assumption: AWS sells FSx for Lustre with 125 to
1,000 MB/s per TiB."""

CPU_DECODE_NS = 9_000_000
"""JPEG decoding, random resized crop and flip of one ImageNet sample on one core, about 110 images/s. Our assumption."""

LONE_HOST_COPY = 0.8
"""A memcpy on a host with a single rank, against one beside seven others: 10 and 8 GB/s. Our assumption: the ends of what one core of a
server CPU reaches, 8 to 12 GB/s, and linear between one rank and eight."""


JITTER_RANK = -1
"""Stands for the host in seeded jitter: cores and storage that all ranks share are slow for all of them at the same time."""


@lru_cache(maxsize=256)
def worker_ns_per_sample(*, model: str, decode_on_cpu: bool, workers: int, loaders: int, ranks: int) -> int:
    """Time of one loader worker for one sample, where `loaders` of the host's `ranks` load with `workers` workers each.

    Without workers the training process does the work itself. Workers take turns where they and the training processes outnumber the cores.
    """
    facts = MODELS[model]
    alone_ns = float(ROW_NS)
    if facts.decodes:
        alone_ns += FILE_LATENCY_NS + facts.encoded_bytes_per_sample / FILE_BYTES_PER_NS
        alone_ns += CPU_DECODE_NS if decode_on_cpu else 0
    load = (loaders * workers + ranks) / HOST_CORES
    return round(alone_ns * (1.0 + BUSY_HOST_SLOWING * min(1.0, load)) * max(1.0, load))


def checkpoint_ns(nbytes: int) -> int:
    """Pickling and writing a checkpoint that lies in host memory."""
    return round(FILE_LATENCY_NS + nbytes / FILE_WRITE_BYTES_PER_NS)


def copy_factor(ranks: int) -> float:
    """How long a memcpy between buffers of the host takes, against the price of `pricing.host_copy_ns`, which is that among eight ranks."""
    return LONE_HOST_COPY + (1.0 - LONE_HOST_COPY) * (ranks - 1) / 7


def upload_factor(gpu: str, *, rank: int, loaders: int) -> int:
    """How many times as long a rank's copy of its loader's batch takes: two GPUs on one PCIe switch halve its way to the host.

    So it is in DGX and HGX machines, whose GPUs sit in pairs behind a switch (NVIDIA's user guides of DGX-1, A100 and H100); PCIe cards are
    taken to have slots of their own. Ranks that load in step copy at the same time.
    """
    neighbour = rank ^ 1
    return 2 if LINKS[GPUS[gpu].link].kind == "nvlink" and max(rank, neighbour) < loaders else 1
