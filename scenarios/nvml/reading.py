"""What the sampler says of one GPU over one period, and its form on the wire.

Owns the shapes only. None means not measured, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scenarios.telemetry import Sample

HELD_DOWN: dict[int, str] = {
    0x001: "idle",
    0x002: "clocks set by a user",
    0x004: "power limit",
    0x008: "hardware slowdown",
    0x010: "held to the slowest of its group",
    0x020: "too warm (driver)",
    0x040: "too warm (hardware)",
    0x080: "power brake of the server",
    0x100: "clocks of a display",
}
"""The bits of nvmlDeviceGetCurrentClocksEventReasons: why the clocks are below their highest."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """The GPU's PCIe link; `sent` and `received` are the GPU's own view."""

    generation: int | None
    width: int | None
    max_generation: int | None
    max_width: int | None
    sent_mb_s: float | None
    received_mb_s: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuProcess:
    """A process with a CUDA context on the GPU. NVML counts process ids of the host, also inside a container."""

    pid: int
    memory_gib: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """What explains a reading: clocks and why they are held down, the link, who else is on the GPU, and what its SMs do."""

    sm_mhz: float | None
    sm_max_mhz: int | None
    held_down: tuple[str, ...] | None
    """Every reason that held at some reading of the period."""
    link: Link
    processes: tuple[GpuProcess, ...] | None
    sm_occupancy: float | None
    tensor_active: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One device over one period that ends `end_ns` after sampling began."""

    rank: int
    """Its place among the devices that CUDA shows."""
    end_ns: int
    gpu_util: float | None
    """Percent of the period in which a kernel ran: the time-weighted mean of the driver's samples."""
    sm_active: float | None
    """Percent of the SMs that were busy, from GPM; None before Hopper."""
    memory_gib: float | None
    """The largest of the period's readings, of all processes and the driver."""
    power_w: float | None
    """The mean of the period's readings."""
    health: Health

    def sample(
        self, *, step: int, epoch: int, epoch_pct: float, learning_rate: float | None = None, weights_apart: float | None = None,
        distinct_pct: float | None = None,
    ) -> Sample:
        """The same as the shared telemetry has it, with what only the training knows. Spinning cannot be seen from outside."""
        return Sample(
            rank=self.rank, end_ns=self.end_ns, step=step, epoch=epoch, epoch_pct=epoch_pct,
            gpu_util=self.gpu_util, sm_active=self.sm_active, spin_pct=None, memory_gib=self.memory_gib, power_w=self.power_w,
            learning_rate=learning_rate, weights_apart=weights_apart, distinct_pct=distinct_pct,
            processes=None if self.health.processes is None else len(self.health.processes),
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """By hand: dataclasses.asdict copies deeply and would be the dearest part of sampling."""
        health, link = self.health, self.health.link
        return {
            "rank": self.rank, "end_ns": self.end_ns, "gpu_util": self.gpu_util, "sm_active": self.sm_active, "memory_gib": self.memory_gib,
            "power_w": self.power_w, "sm_mhz": health.sm_mhz, "sm_max_mhz": health.sm_max_mhz, "held_down": health.held_down,
            "link": [link.generation, link.width, link.max_generation, link.max_width, link.sent_mb_s, link.received_mb_s],
            "processes": None if health.processes is None else [[each.pid, each.memory_gib] for each in health.processes],
            "sm_occupancy": health.sm_occupancy, "tensor_active": health.tensor_active,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reading:
        """What `as_dict` made, also after JSON."""
        link = dict(zip(("generation", "width", "max_generation", "max_width", "sent_mb_s", "received_mb_s"), data["link"], strict=True))
        processes = data["processes"]
        return cls(
            **{name: data[name] for name in ("rank", "end_ns", "gpu_util", "sm_active", "memory_gib", "power_w")},
            health=Health(
                **{name: data[name] for name in ("sm_mhz", "sm_max_mhz", "sm_occupancy", "tensor_active")},
                held_down=None if data["held_down"] is None else tuple(data["held_down"]),
                link=Link(**link),
                processes=None if processes is None else tuple(GpuProcess(pid=pid, memory_gib=memory) for pid, memory in processes),
            ),
        )


def held_down_words(bits: int) -> tuple[str, ...]:
    """The reasons in words; bits that newer drivers add keep their number."""
    known = tuple(words for bit, words in HELD_DOWN.items() if bits & bit)
    rest = bits & ~sum(HELD_DOWN)
    return (*known, f"reason {rest:#x}") if rest else known
