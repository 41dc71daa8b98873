"""What GPUs this machine really has, asked of the driver through NVML, and why a run is virtual.

Owns the finding and its wording. Sampling real GPUs is not its business; must not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pynvml


@dataclass(frozen=True, kw_only=True)
class RealGpus:
    """The GPUs that the driver reports; none, with the reason, where it cannot be asked."""

    names: tuple[str, ...]
    reason: str
    """Why there are none; empty where there are some."""


@lru_cache(maxsize=1)
def real_gpus() -> RealGpus:
    """Ask NVML once per process."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return RealGpus(names=(), reason=_why(error))
    try:
        count = pynvml.nvmlDeviceGetCount()
        names = tuple(str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(index))) for index in range(count))
    except pynvml.NVMLError as error:
        return RealGpus(names=(), reason=_why(error))
    finally:
        pynvml.nvmlShutdown()
    return RealGpus(names=names, reason="" if names else "the NVIDIA driver reports no GPU")


def why_virtual(found: RealGpus) -> str:
    """One clause for a page or a terminal: why runs here use virtual GPUs."""
    if not found.names:
        return found.reason
    count = len(found.names)
    return f"{count} real GPU{'s' if count > 1 else ''} found ({found.names[0]}), but runs on real GPUs are not built yet"


def _why(error: pynvml.NVMLError) -> str:
    reasons = {
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no NVIDIA driver is installed (libnvidia-ml.so was not found)",
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is installed but not loaded",
        pynvml.NVML_ERROR_NO_PERMISSION: "this user may not ask the NVIDIA driver",
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "the NVIDIA driver and its library have different versions; a reboot mends that",
    }
    return reasons.get(error.value, f"the NVIDIA driver cannot be asked: {error}")
