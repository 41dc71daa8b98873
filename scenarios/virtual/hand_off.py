"""One rank hands every rank its shard, in virtual time: over the host's memory, or from GPU to GPU by NCCL.

Owns what each end is charged; the exchange of times between ranks is the caller's. A receiver's clock is never earlier than the sender's
plus the transfer. Must not touch tensors.
"""

from __future__ import annotations

from scenarios.costs import pricing
from scenarios.virtual.device import VirtualDevice


def send_over_host(device: VirtualDevice, shard_bytes: int) -> list[int]:
    """On the sending rank: fetch all shards from the GPU, copy each into memory that its rank shares; returns when each lies there."""
    setup = device.setup
    device.download(shard_bytes * setup.world)
    sent_ns: list[int] = []
    for rank in range(setup.world):
        if rank != setup.rank:
            device.host_copy(shard_bytes)
            device.traffic.sent += shard_bytes
        sent_ns.append(device.host_ns)
    return sent_ns


def receive_over_host(device: VirtualDevice, shard_bytes: int, *, src: int, sent_ns: int) -> None:
    """On every rank: wait for the shard, which lies in shared memory from `sent_ns` on, and copy it to the GPU."""
    if device.setup.rank != src:
        device.host_wait(sent_ns)
        device.traffic.received += shard_bytes
    device.upload(shard_bytes)


def hand_out_by_nccl(device: VirtualDevice, shard_bytes: int, *, src: int, last_ns: int) -> None:
    """On every rank, given when the last rank's kernel became resident: the transfer starts then and ends for all together.

    The sender's link carries every other rank's shard, one after the other.
    """
    setup = device.setup
    others = setup.world - 1
    if setup.rank == src:
        device.traffic.sent += shard_bytes * others
    else:
        device.traffic.received += shard_bytes
    link = pricing.link_of(setup.gpu, setup.link)
    device.join_nccl("scatter", start_ns=last_ns, end_ns=last_ns + round(others * (link.latency_us * 1e3 + shard_bytes / link.bus_gb_s)))
