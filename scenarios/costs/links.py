"""The links that gradients travel over: what joins the GPUs of one node (LINKS), and what joins nodes (NETWORKS).

Owns bandwidths and latencies with their sources. Must not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """One kind of link. Bandwidths are NCCL's bus bandwidth of a large all-reduce (nccl-tests, PERFORMANCE.md), 1e9 bytes a second."""

    name: str
    """Key in LINKS and value of --link, or key in NETWORKS and value of --network."""
    label: str
    kind: Literal["nvlink", "pcie", "network"]
    bus_gb_s: float
    """Ring all-reduce among the eight GPUs of a node; for a network, among nodes with all adapters of a node together."""
    latency_us: float
    """One step of a ring."""
    nvls_gb_s: float | None = None
    """The same with NVLink SHARP, where switches add up; None without."""
    source: str


_LATENCY = "; time of a step: our estimate, from nccl-tests at a few bytes"

LINKS: dict[str, Link] = {
    link.name: link
    for link in (
        Link(
            name="nvlink2", label="NVLink 2", kind="nvlink", bus_gb_s=120.0, latency_us=5.0,
            source="6 links of 25 GB/s (V100 white paper), of which a ring reaches 80 % (NVIDIA/nccl-tests#212)" + _LATENCY,
        ),
        Link(
            name="nvlink3", label="NVLink 3", kind="nvlink", bus_gb_s=235.0, latency_us=4.0,
            source="12 links of 25 GB/s (A100 white paper), of which a ring reaches 80 % (NVIDIA/nccl-tests#212); measured: 200 to 235 "
            "(NVIDIA/nccl-tests#149, #178, NVIDIA/nccl#583)" + _LATENCY,
        ),
        Link(
            name="nvlink4", label="NVLink 4", kind="nvlink", bus_gb_s=370.0, latency_us=4.0, nvls_gb_s=480.0,
            source="NVIDIA/nccl-tests#212: 370 as a ring, 480 with NVLink SHARP; #272 measures 475 on eight H200" + _LATENCY,
        ),
        Link(
            name="nvlink5", label="NVLink 5", kind="nvlink", bus_gb_s=720.0, latency_us=4.0, nvls_gb_s=830.0,
            source="NVIDIA/nccl#1807: NCCL reckons with 720 as a ring; 830 measured on eight B200 with NVLink SHARP" + _LATENCY,
        ),
        Link(
            name="pcie3", label="PCIe 3, peer-to-peer", kind="pcie", bus_gb_s=10.0, latency_us=8.0,
            source="half of PCIe 4's" + _LATENCY,
        ),
        Link(
            name="pcie3-host", label="PCIe 3, through the host", kind="pcie", bus_gb_s=7.0, latency_us=10.0,
            source="a quarter of PCIe 5's through the host" + _LATENCY,
        ),
        Link(
            name="pcie4", label="PCIe 4, peer-to-peer", kind="pcie", bus_gb_s=20.0, latency_us=8.0,
            source="NCCL reckons with 24 for 16 lanes (log in NVIDIA/nccl-tests#307), of which a ring reaches 80 to 85 %" + _LATENCY,
        ),
        Link(
            name="pcie4-host", label="PCIe 4, through the host", kind="pcie", bus_gb_s=14.0, latency_us=10.0,
            source="half of PCIe 5's through the host" + _LATENCY,
        ),
        Link(
            name="pcie5", label="PCIe 5, peer-to-peer", kind="pcie", bus_gb_s=40.0, latency_us=8.0,
            source="twice PCIe 4's" + _LATENCY,
        ),
        Link(
            name="pcie5-host", label="PCIe 5, through the host", kind="pcie", bus_gb_s=28.0, latency_us=10.0,
            source="NVIDIA/nccl#1639: eight RTX 5090, which have no peer-to-peer" + _LATENCY,
        ),
    )
}
"""What can join the GPUs of one node."""

NETWORKS: dict[str, Link] = {
    link.name: link
    for link in (
        Link(
            name="eth-100", label="100 Gb Ethernet", kind="network", bus_gb_s=9.4, latency_us=20.0,
            source="NVIDIA/nccl#495: 600 of 800 Gb/s over RoCE, so 75 % of the line" + _LATENCY,
        ),
        Link(
            name="hdr-200", label="HDR InfiniBand, 200 Gb/s", kind="network", bus_gb_s=22.7, latency_us=12.0,
            source="NVIDIA/nccl-tests#100: 91 with four adapters in a node" + _LATENCY,
        ),
        Link(
            name="edr-100x4", label="EDR InfiniBand, 4 x 100 Gb/s", kind="network", bus_gb_s=45.0, latency_us=12.0,
            source="91 % of the line, as HDR reaches (NVIDIA/nccl-tests#100)" + _LATENCY,
        ),
        Link(
            name="hdr-200x8", label="HDR InfiniBand, 8 x 200 Gb/s", kind="network", bus_gb_s=182.0, latency_us=12.0,
            source="NVIDIA/nccl-tests#100: 91 with four adapters in a node" + _LATENCY,
        ),
        Link(
            name="ndr-400x8", label="NDR InfiniBand, 8 x 400 Gb/s", kind="network", bus_gb_s=368.0, latency_us=10.0,
            source="NVIDIA/nccl-tests#290: 46 to 48 for each adapter" + _LATENCY,
        ),
    )
}
"""What can join nodes: all adapters of one node together."""
