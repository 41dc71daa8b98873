"""What a run's GPUs are called and can hold: the table's figures for virtual ones, the driver's for real ones.

Owns the form in which a record's head has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scenarios.config import RunConfig
from scenarios.costs.gpus import GPUS


@dataclass(frozen=True, kw_only=True)
class Card:
    """The kind of a run's GPUs. None is not known."""

    label: str
    memory_gib: float | None
    power_limit_w: float | None


def source_of_config(config: RunConfig) -> str:
    """Where the samples of such a run come from, once it has been decided what it runs on."""
    return "nvml" if config.backend == "cuda" else "virtual"


def virtual_card(config: RunConfig) -> Card:
    gpu = GPUS[config.gpu]
    return Card(label=gpu.label, memory_gib=gpu.memory_gib, power_limit_w=gpu.peak_w)


def real_card(start: Mapping[str, Any]) -> Card:
    """From the first line of a sampler. Between unlike GPUs, the smallest memory is the limit of all."""
    devices = start["devices"]
    names = list(dict.fromkeys(str(device["name"]) for device in devices))
    memory = [device["memory_gib"] for device in devices if device.get("memory_gib")]
    power = [device["power_limit_w"] for device in devices if device.get("power_limit_w")]
    return Card(
        label=" and ".join(names), memory_gib=round(min(memory), 2) if memory else None, power_limit_w=min(power) if power else None
    )


UNKNOWN_CARD = Card(label="GPU", memory_gib=None, power_limit_w=None)
