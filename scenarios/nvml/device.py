"""Reads one GPU, or one MIG instance, through NVML: at every tick what changes fast, now and then what does not.

Owns which question is asked when. Must not know of other GPUs, print, or wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pynvml

from scenarios.nvml.inventory import GIB, mig_handle
from scenarios.nvml.library import Counter, GpuLost, ask
from scenarios.nvml.raw import BufferedSamples, GpmRequest
from scenarios.nvml.reading import GpuProcess, Health, Link, Reading, held_down_words
from scenarios.nvml.utilization import LONGEST_US, Busy
from scenarios.nvml.visible import Target

SM_UTIL, SM_OCCUPANCY, ANY_TENSOR, PCIE_SENT, PCIE_RECEIVED = 2, 3, 5, 20, 21
GPM_METRICS = (SM_UTIL, SM_OCCUPANCY, ANY_TENSOR, PCIE_SENT, PCIE_RECEIVED)
MIB = 2**20

SILENCE_US = LONGEST_US + 200_000
"""What a reading of the moment may stand for: a silence is noticed this late at most."""


@dataclass(slots=True)
class _Period:
    """What the ticks of one period have read so far."""

    memory: list[float] = field(default_factory=list)
    power: list[float] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)
    reasons: int | None = None
    gpm: dict[int, float] = field(default_factory=dict)


class Gpm:
    """SM and tensor activity between one call and the next. A GPU has none before Hopper."""

    def __init__(self, parent: Any, gpu_instance: int | None) -> None:
        self._samples = (pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc())
        taking = (pynvml.nvmlGpmSampleGet, parent) if gpu_instance is None else (pynvml.nvmlGpmMigSampleGet, parent, gpu_instance)
        self._take = Counter(*taking)
        one, other = self._samples
        self._between = (Counter(GpmRequest(GPM_METRICS, one, other)), Counter(GpmRequest(GPM_METRICS, other, one)))
        self._taken = 0

    @property
    def lacking(self) -> str:
        return self._take.lacking or self._between[0].lacking

    def since_last(self) -> dict[int, float]:
        """Metric -> its mean since the last call; empty at the first one."""
        place = self._taken % 2
        if self._take(self._samples[place]) is None:
            self._taken = 0
            return {}
        self._taken += 1
        return {} if self._taken < 2 else self._between[1 - place]() or {}


class DeviceReader:
    """One lane. `tick` and `boundary` ask the driver and raise GpuLost; `reading` only computes."""

    def __init__(self, target: Target, *, rank: int, now_us: int, clock: Callable[[], int]) -> None:
        """`clock` tells our time in microseconds when an answer has come: a moment from before the question would be too early."""
        self.target = target
        self.rank = rank
        self._clock_us = clock
        if target.gpu.fault:
            raise GpuLost(target.gpu.fault)
        parent = ask(pynvml.nvmlDeviceGetHandleByIndex, target.gpu.index)
        handle = parent if target.instance is None else mig_handle(parent, target.instance)
        if handle is None:
            raise GpuLost("NVML gives no handle for it any more")
        self.busy = Busy(now_us)
        self._periods: dict[int, _Period] = {}
        self._gpm_from = 0
        self._gpm = Gpm(parent, target.instance.gpu_instance if target.instance else None) if target.gpu.gpm else None
        self._samples = Counter(BufferedSamples(handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES))
        self._rates = Counter(pynvml.nvmlDeviceGetUtilizationRates, handle)
        self._memory = Counter(pynvml.nvmlDeviceGetMemoryInfo, handle)
        self._power = Counter(pynvml.nvmlDeviceGetPowerUsage, parent)
        self._clock = Counter(pynvml.nvmlDeviceGetClockInfo, parent, pynvml.NVML_CLOCK_SM)
        self._reasons = Counter(pynvml.nvmlDeviceGetCurrentClocksEventReasons, parent)
        self._old_reasons = Counter(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, parent)
        self._processes = Counter(pynvml.nvmlDeviceGetComputeRunningProcesses_v3, handle)
        self._old_processes = Counter(pynvml.nvmlDeviceGetComputeRunningProcesses_v2, handle)
        self._generation = Counter(pynvml.nvmlDeviceGetCurrPcieLinkGeneration, parent)
        self._width = Counter(pynvml.nvmlDeviceGetCurrPcieLinkWidth, parent)
        self._traffic = tuple(
            Counter(pynvml.nvmlDeviceGetPcieThroughput, parent, counter)
            for counter in (pynvml.NVML_PCIE_UTIL_TX_BYTES, pynvml.NVML_PCIE_UTIL_RX_BYTES)
        )
        limit_mw = ask(pynvml.nvmlDeviceGetEnforcedPowerLimit, parent)
        self.power_limit_w: float | None = None if limit_mw is None else limit_mw / 1000
        self._max_mhz = ask(pynvml.nvmlDeviceGetMaxClockInfo, parent, pynvml.NVML_CLOCK_SM)
        self._max_link = tuple(
            ask(function, parent) for function in (pynvml.nvmlDeviceGetMaxPcieLinkGeneration, pynvml.nvmlDeviceGetMaxPcieLinkWidth)
        )
        self._link: tuple[int | None, int | None] = (None, None)
        self._sent_received: list[float | None] = [None, None]
        self._seen: tuple[GpuProcess, ...] | None = None
        self._read_busy(now_us)
        if self._gpm:
            self._gpm.since_last()

    def tick(self, now_us: int, period: int) -> None:
        """Read what changes fast; it belongs to the period with this number."""
        if self._samples.lacking:
            self._read_busy(now_us)
        reading = self._periods.setdefault(period, _Period())
        if (memory := self._memory()) is not None:
            reading.memory.append(memory.used / GIB)
        if (power := self._power()) is not None:
            reading.power.append(power / 1000)
        if (clock := self._clock()) is not None:
            reading.clock.append(clock)
        reasons = self._reasons()
        if reasons is None and self._reasons.lacking:
            reasons = self._old_reasons()
        if reasons is not None:
            reading.reasons = (reading.reasons or 0) | reasons

    def boundary(self, now_us: int, period: int) -> None:
        """The period with this number has just ended: fetch the driver's history; GPM measures from one end to the next."""
        if not self._samples.lacking:
            self._read_busy(now_us)
        if self._gpm is None or self._gpm.lacking:
            return
        found = self._gpm.since_last()
        # After a late tick one measurement spans several periods: it is the mean of each of them.
        for number in range(self._gpm_from, period + 1):
            self._periods.setdefault(number, _Period()).gpm = found
        self._gpm_from = period + 1

    def last_look(self, now_us: int) -> None:
        """Sampling ends: fetch what the driver has kept since the last tick, which may have been late."""
        if not self._samples.lacking:
            self._read_busy(now_us)

    def read_slow(self) -> None:
        """Read what rarely changes."""
        self._link = (self._generation(), self._width())
        processes = self._processes()
        if processes is None and self._processes.lacking:
            processes = self._old_processes()
        self._seen = None if processes is None else tuple(
            GpuProcess(pid=each.pid, memory_gib=None if each.usedGpuMemory is None else round(each.usedGpuMemory / GIB, 3))
            for each in sorted(processes, key=lambda each: each.pid)
        )  # fmt: skip

    def read_traffic(self, direction: int) -> None:
        """PCIe traffic sent (0) or received (1), where GPM does not tell it: the driver counts for 20 ms, so this is asked in turns."""
        if self._gpm is None or self._gpm.lacking:
            value = self._traffic[direction]()
            self._sent_received[direction] = None if value is None else value * 1024 / 1e6

    def reading(self, period: int, from_us: int, until_us: int, end_ns: int) -> Reading:
        """The period with this number, which lasted from `from_us` to `until_us` on our clock. Asked once, in order."""
        read = self._periods.pop(period, None) or _Period()
        busy = self.busy.mean(from_us, until_us)
        self.busy.forget(until_us)
        sent, received = self._sent_received
        if PCIE_SENT in read.gpm:
            sent, received = read.gpm[PCIE_SENT] * MIB / 1e6, read.gpm.get(PCIE_RECEIVED, 0.0) * MIB / 1e6
        return Reading(
            rank=self.rank, end_ns=end_ns, gpu_util=_rounded(busy), sm_active=_rounded(read.gpm.get(SM_UTIL)),
            memory_gib=_rounded(max(read.memory, default=None), 4), power_w=_rounded(_mean(read.power)),
            health=Health(
                sm_mhz=_rounded(_mean(read.clock), 1), sm_max_mhz=self._max_mhz,
                held_down=None if read.reasons is None else held_down_words(read.reasons),
                link=Link(
                    generation=self._link[0], width=self._link[1], max_generation=self._max_link[0], max_width=self._max_link[1],
                    sent_mb_s=_rounded(sent), received_mb_s=_rounded(received),
                ),
                processes=self._seen,
                sm_occupancy=_rounded(read.gpm.get(SM_OCCUPANCY)), tensor_active=_rounded(read.gpm.get(ANY_TENSOR)),
            ),
        )  # fmt: skip

    def known_until(self, until_us: int) -> bool:
        """Whether all that will be known of how busy it was until then is known now."""
        return bool(self._samples.lacking and self._rates.lacking) or self.busy.covered_until_us >= until_us

    def gaps(self) -> dict[str, str]:
        """What this device has no counter for, and why."""
        busy = self._samples.lacking and self._rates.lacking
        activity = self._gpm.lacking if self._gpm else "this card has none (GPM came with Hopper)"
        found = {
            "gpu_util": busy, "sm_active": activity, "memory_gib": self._memory.lacking, "power_w": self._power.lacking,
            "sm_mhz": self._clock.lacking, "held_down": self._reasons.lacking and self._old_reasons.lacking,
            "link": self._generation.lacking, "processes": self._processes.lacking and self._old_processes.lacking,
        }  # fmt: skip
        return {name: why for name, why in found.items() if why}

    def _read_busy(self, now_us: int) -> None:
        samples = self._samples(self.busy.seen_us)
        if samples:
            self.busy.add(samples, self._clock_us())
        if self._samples.lacking or self.busy.dry(now_us):
            rates = self._rates()
            if rates is not None:
                self.busy.stand_in(rates.gpu, now_us, max(self.busy.covered_until_us, now_us - SILENCE_US))


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _rounded(value: float | None, digits: int = 3) -> float | None:
    return None if value is None else round(value, digits)
