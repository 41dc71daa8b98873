"""Which GPU is rank 0's: CUDA_VISIBLE_DEVICES, as PyTorch and CUDA read it, mapped to NVML's numbering.

NVML always lists every GPU in the order of PCI bus ids. CUDA lists only what CUDA_VISIBLE_DEVICES names, in that order, and its plain
numbers follow CUDA_DEVICE_ORDER, which by default puts the fastest GPU first: between unlike GPUs the two numberings can differ.
Owns the mapping. Must not ask NVML.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scenarios.nvml.inventory import Gpu, MigInstance

VARIABLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"


@dataclass(frozen=True, kw_only=True)
class Target:
    """One device that CUDA shows: a GPU, or one MIG instance of it."""

    gpu: Gpu
    instance: MigInstance | None = None

    @property
    def label(self) -> str:
        """How a message names it."""
        inside = f", MIG instance {self.instance.name or self.instance.uuid}" if self.instance else ""
        return f"GPU {self.gpu.index} ({self.gpu.name}{inside})"


@dataclass(frozen=True, kw_only=True)
class Visible:
    """The devices in CUDA's order, so that the position is the local rank, and what is worth knowing about the choice."""

    targets: tuple[Target, ...]
    notes: tuple[str, ...]


class _Stop(Exception):
    """CUDA reads no further; the text says why."""


def visible(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> Visible:
    """The devices that a CUDA process with this environment sees."""
    value = environ.get(VARIABLE)
    if value is None:
        targets = [_whole(gpu) for gpu in gpus]
        return Visible(targets=tuple(targets), notes=_mig_notes(targets))
    found: list[Target] = []
    notes: list[str] = []
    entries = [entry.strip() for entry in value.split(",")] if value.strip() else []
    for entry in entries:
        try:
            target = _named(entry, gpus)
        except _Stop as stop:
            notes.append(f"{VARIABLE}={value}: {stop}; CUDA reads no further")
            break
        if target in found:
            # Both CUDA and PyTorch take a device named twice for a mistake and show none at all.
            return Visible(targets=(), notes=(f"{VARIABLE}={value}: {entry} names a GPU for the second time; CUDA then shows none",))
        found.append(target)
    if not entries:
        notes.append(f"{VARIABLE} is empty: CUDA shows no GPU")
    by_number = any(entry.isdigit() for entry in entries)
    if by_number and len({gpu.name for gpu in gpus}) > 1 and environ.get(ORDER) != "PCI_BUS_ID":
        notes.append(
            f"The GPUs are of different kinds and {ORDER} is not PCI_BUS_ID: CUDA's numbers may differ from NVML's, which are used here. "
            f"Set {ORDER}=PCI_BUS_ID or name the GPUs by UUID"
        )
    return Visible(targets=tuple(found), notes=(*notes, *_mig_notes(found)))


def _named(entry: str, gpus: Sequence[Gpu]) -> Target:
    if entry.startswith("MIG-"):
        return _mig(entry, gpus)
    if entry.startswith("GPU-"):
        fits = [gpu for gpu in gpus if gpu.uuid.lower().startswith(entry.lower())]
        if len(fits) > 1:
            raise _Stop(f"{entry} fits {len(fits)} GPUs")
        if not fits:
            raise _Stop(f"no GPU here has a UUID that starts with {entry}")
        return _whole(fits[0])
    number = re.match(r"[+-]?\d+", entry)  # as C's strtol: what follows the digits is ignored
    if number is None:
        raise _Stop(f"'{entry}' is neither a number nor the UUID of a GPU or MIG instance")
    index = int(number[0])
    if not 0 <= index < len(gpus):
        raise _Stop(f"there is no GPU {index}" + (f", only 0 to {len(gpus) - 1}" if gpus else ""))
    return _whole(gpus[index])


def _mig(entry: str, gpus: Sequence[Gpu]) -> Target:
    """MIG-UUID, or as drivers before 470 name them MIG-GPU-UUID/GPU INSTANCE/COMPUTE INSTANCE."""
    old = re.fullmatch(r"MIG-(GPU-[0-9a-fA-F-]+)/(\d+)/(\d+)", entry)
    fits = [
        Target(gpu=gpu, instance=each)
        for gpu in gpus
        for each in gpu.instances
        if (
            gpu.uuid.lower() == old[1].lower() and (each.gpu_instance, each.compute_instance) == (int(old[2]), int(old[3]))
            if old
            else each.uuid.lower().startswith(entry.lower())
        )
    ]
    if len(fits) != 1:
        raise _Stop(f"{entry} fits {len(fits)} MIG instances" if fits else f"no MIG instance here is named {entry}")
    return fits[0]


def _whole(gpu: Gpu) -> Target:
    """A GPU in MIG mode is seen as its first instance."""
    return Target(gpu=gpu, instance=gpu.instances[0] if gpu.instances else None)


def _mig_notes(targets: Sequence[Target]) -> tuple[str, ...]:
    if not any(target.gpu.mig for target in targets):
        return ()
    empty = [f"GPU {target.gpu.index} is in MIG mode without an instance: nothing can run on it" for target in targets
             if target.gpu.mig and target.instance is None]  # fmt: skip
    many = ["A process sees only one MIG instance, so each rank needs its own in CUDA_VISIBLE_DEVICES"] if len(targets) > 1 else []
    return (*empty, *many, "Power, clocks and the PCIe link of a MIG instance are those of the whole card")
