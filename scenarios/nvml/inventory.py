"""Which GPUs the driver reports, with their links and MIG instances: `python -m scenarios.nvml.inventory` prints it as JSON.

Owns the finding and its form. Must not sample, and must not be asked in the web server's own process: a driver may hang.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pynvml

from scenarios.nvml.library import GpuLost, NvmlUnusable, ask, open_nvml

GIB = 2**30

PCIE_PATHS = {
    pynvml.NVML_TOPOLOGY_INTERNAL: "PIX",
    pynvml.NVML_TOPOLOGY_SINGLE: "PIX",
    pynvml.NVML_TOPOLOGY_MULTIPLE: "PXB",
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: "PHB",
    pynvml.NVML_TOPOLOGY_NODE: "NODE",
    pynvml.NVML_TOPOLOGY_SYSTEM: "SYS",
}
"""Nearest common point of two GPUs on PCIe, in the letters of `nvidia-smi topo -m`."""

P2P_NVLINK = 2
"""NVML_P2P_CAPS_INDEX_NVLINK."""


@dataclass(frozen=True, kw_only=True)
class MigInstance:
    """One compute instance of a GPU in MIG mode."""

    slot: int
    gpu_instance: int
    compute_instance: int
    uuid: str
    name: str
    memory_gib: float | None


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU as NVML numbers it, in the order of PCI bus ids."""

    index: int
    name: str
    uuid: str
    bus_id: str
    memory_gib: float | None
    capability: tuple[int, int] | None
    gpm: bool
    """Whether it measures SM and tensor activity (Hopper and later)."""
    mig: bool
    instances: tuple[MigInstance, ...]
    fault: str
    """Why it answers nothing; empty where it does."""


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """All that the driver reports."""

    driver: str
    cuda: tuple[int, int] | None
    """The newest CUDA version that the driver supports."""
    gpus: tuple[Gpu, ...]
    links: tuple[tuple[str, ...], ...]
    """Per pair of GPUs: NV and a number of NVLinks, a PCIe path (PIX, PXB, PHB, NODE, SYS), X for itself, or "" where unknown."""

    def as_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Inventory:
        """The inventory that `as_json` wrote."""
        data = json.loads(text)
        gpus = tuple(
            Gpu(**{**gpu, "capability": _pair(gpu["capability"]), "instances": tuple(MigInstance(**each) for each in gpu["instances"])})
            for gpu in data["gpus"]
        )
        return cls(driver=data["driver"], cuda=_pair(data["cuda"]), gpus=gpus, links=tuple(tuple(row) for row in data["links"]))


def take_inventory() -> Inventory:
    """Ask the driver; NVML has to be open. A GPU that answers nothing is listed with its fault. Raises NvmlUnusable."""
    count = ask(pynvml.nvmlDeviceGetCount) or 0
    cuda = ask(pynvml.nvmlSystemGetCudaDriverVersion_v2)
    gpus = tuple(_gpu(index) for index in range(count))
    return Inventory(
        driver=ask(pynvml.nvmlSystemGetDriverVersion) or "",
        cuda=None if cuda is None else (cuda // 1000, cuda % 1000 // 10),
        gpus=gpus,
        links=tuple(tuple(_link(a, b) for b in gpus) for a in gpus),
    )


def mig_handle(parent: Any, instance: MigInstance) -> Any:
    """NVML's handle of one MIG instance, or None where it is gone."""
    return ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, parent, instance.slot)


def _gpu(index: int) -> Gpu:
    try:
        handle = ask(pynvml.nvmlDeviceGetHandleByIndex, index)
        if handle is None:
            return _silent(index, "NVML gives no handle for it; this user may lack permission")
        memory = ask(pynvml.nvmlDeviceGetMemoryInfo, handle)
        pci = ask(pynvml.nvmlDeviceGetPciInfo, handle)
        mode = ask(pynvml.nvmlDeviceGetMigMode, handle)
        support = ask(pynvml.nvmlGpmQueryDeviceSupport, handle)
        mig = bool(mode and mode[0])
        return Gpu(
            index=index,
            name=ask(pynvml.nvmlDeviceGetName, handle) or "unnamed GPU",
            uuid=ask(pynvml.nvmlDeviceGetUUID, handle) or "",
            bus_id=_text(pci.busId) if pci else "",
            memory_gib=None if memory is None else memory.total / GIB,
            capability=ask(pynvml.nvmlDeviceGetCudaComputeCapability, handle),
            gpm=bool(support and support.isSupportedDevice),
            mig=mig,
            instances=tuple(_instances(handle)) if mig else (),
            fault="",
        )
    except GpuLost as lost:
        return _silent(index, f"it fell off the bus ({lost})")


def _silent(index: int, fault: str) -> Gpu:
    return Gpu(
        index=index, name="unnamed GPU", uuid="", bus_id="", memory_gib=None, capability=None,
        gpm=False, mig=False, instances=(), fault=fault,
    )  # fmt: skip


def _instances(parent: Any) -> Sequence[MigInstance]:
    found = []
    for slot in range(ask(pynvml.nvmlDeviceGetMaxMigDeviceCount, parent) or 0):
        handle = ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, parent, slot)
        if handle is None:
            continue
        memory = ask(pynvml.nvmlDeviceGetMemoryInfo, handle)
        found.append(
            MigInstance(
                slot=slot,
                gpu_instance=ask(pynvml.nvmlDeviceGetGpuInstanceId, handle),
                compute_instance=ask(pynvml.nvmlDeviceGetComputeInstanceId, handle),
                uuid=ask(pynvml.nvmlDeviceGetUUID, handle) or "",
                name=ask(pynvml.nvmlDeviceGetName, handle) or "",
                memory_gib=None if memory is None else memory.total / GIB,
            )
        )
    return found


def _link(a: Gpu, b: Gpu) -> str:
    if a.index == b.index:
        return "X"
    if a.fault or b.fault:
        return ""
    try:
        one, other = pynvml.nvmlDeviceGetHandleByIndex(a.index), pynvml.nvmlDeviceGetHandleByIndex(b.index)
        if ask(pynvml.nvmlDeviceGetP2PStatus, one, other, P2P_NVLINK) == pynvml.NVML_P2P_STATUS_OK:
            return f"NV{_nvlinks(one, b.bus_id) or ''}"
        return PCIE_PATHS.get(ask(pynvml.nvmlDeviceGetTopologyCommonAncestor, one, other), "")
    except (GpuLost, pynvml.NVMLError):
        return ""


def _nvlinks(handle: Any, other_bus_id: str) -> int:
    """NVLinks of one GPU that lead to the other one, or to a switch, which leads to all."""
    count = 0
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        if not ask(pynvml.nvmlDeviceGetNvLinkState, handle, link):
            continue
        if ask(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link) == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            count += 1
        else:
            remote = ask(pynvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link)
            count += remote is not None and _text(remote.busId).lower() == other_bus_id.lower()
    return count


def _pair(values: Sequence[int] | None) -> tuple[int, int] | None:
    return None if values is None else (values[0], values[1])


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def main() -> int:
    """Print {"inventory": ...} or {"reason": "..."}; both are answers."""
    try:
        open_nvml()
        print(json.dumps({"inventory": dataclasses.asdict(take_inventory())}))
    except NvmlUnusable as error:
        print(json.dumps({"reason": str(error)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
