"""The links that gradients travel over: what joins the GPUs of one node, and what joins nodes.

Owns bandwidths and latencies with their sources. Must not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """One kind of link. Bandwidths are NCCL's bus bandwidth of a large all-reduce (nccl-tests, PERFORMANCE.md), 1e9 bytes a second."""

    name: str
    """Key in LINKS and value of --link."""
    label: str
    kind: Literal["nvlink", "pcie", "network"]
    bus_gb_s: float
    """Ring all-reduce among the eight GPUs of a node, or across nodes for a network."""
    latency_us: float
    """One step of a ring."""
    nvls_gb_s: float | None
    """The same with NVLink SHARP, where switches add up; None without."""
    source: str


_NCCL_TESTS = "large-message bus bandwidth of nccl-tests on eight GPUs"

LINKS: dict[str, Link] = {
    link.name: link
    for link in (
        Link(name="nvlink2", label="NVLink 2", kind="nvlink", bus_gb_s=120.0, latency_us=5.0, nvls_gb_s=None, source=_NCCL_TESTS),
        Link(name="nvlink3", label="NVLink 3", kind="nvlink", bus_gb_s=235.0, latency_us=4.0, nvls_gb_s=None, source=_NCCL_TESTS),
        Link(name="nvlink4", label="NVLink 4", kind="nvlink", bus_gb_s=370.0, latency_us=4.0, nvls_gb_s=480.0, source=_NCCL_TESTS),
        Link(name="pcie3", label="PCIe 3", kind="pcie", bus_gb_s=10.0, latency_us=8.0, nvls_gb_s=None, source=_NCCL_TESTS),
        Link(name="pcie4", label="PCIe 4", kind="pcie", bus_gb_s=20.0, latency_us=8.0, nvls_gb_s=None, source=_NCCL_TESTS),
    )
}
