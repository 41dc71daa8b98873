"""Samples the GPUs that CUDA shows, as a process of its own: `python -m scenarios.nvml.sampler`.

Prints JSON lines: `start` (devices, counters they lack, notes), `tick` (one Reading per device, null where it is lost), `lost`, `end`.
Ends with its parent, at SIGTERM or SIGINT, and when nobody reads what it prints. Owns the clock and the lines. Must not run in a rank or
the web server.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from scenarios.nvml.device import DeviceReader
from scenarios.nvml.inventory import take_inventory
from scenarios.nvml.library import GpuLost, NvmlUnusable, open_nvml
from scenarios.nvml.visible import Target, visible
from scenarios.processes import die_with_parent
from scenarios.telemetry import SAMPLE_PERIOD_NS

PERIOD_US = SAMPLE_PERIOD_NS // 1000
TICKS_PER_PERIOD = 2
TICK_US = PERIOD_US // TICKS_PER_PERIOD
SLOW_TICKS = 10
"""Ticks between two readings of what rarely changes."""
PATIENCE_US = 1_500_000
"""How long a period waits for the driver's samples of it: one comes every 1/6 s to 1 s."""

Event = dict[str, Any]

_encode = json.JSONEncoder(separators=(",", ":")).encode


def _clock_us() -> int:
    return time.monotonic_ns() // 1000


class Watch:
    """Several devices over common periods. Time comes from outside, in microseconds, so that a test can decide it."""

    def __init__(self, targets: Sequence[Target], *, now_us: int, clock: Callable[[], int] = _clock_us) -> None:
        """`now_us` is when the first period begins; `clock` is read when the driver has answered."""
        self._start_us = now_us
        self._next_period = 0
        self._ticks = 0
        self._targets = tuple(targets)
        self._readers: dict[int, DeviceReader] = {}
        self._lost_in: dict[int, int] = {}
        """Rank -> the first period of which nothing is known."""
        self._losses: list[Event] = []
        for rank, target in enumerate(targets):
            try:
                self._readers[rank] = DeviceReader(target, rank=rank, now_us=now_us, clock=clock)
                self._readers[rank].tick(now_us, -1)  # finds out which counters there are
                self._readers[rank].read_slow()
            except GpuLost as lost:
                self._lose(rank, lost, now_us)

    @property
    def alive(self) -> int:
        """Devices that still answer."""
        return len(self._targets) - len(self._lost_in)

    def gaps(self) -> dict[int, dict[str, str]]:
        """Per rank, what it has no counter for, and why."""
        return {rank: gaps for rank, reader in self._readers.items() if (gaps := reader.gaps())}

    def power_limit_w(self, rank: int) -> float | None:
        reader = self._readers.get(rank)
        return None if reader is None else reader.power_limit_w

    def tick(self, now_us: int) -> Iterator[Event]:
        """Read every device; what has become known by it."""
        self._ticks = number = max(self._ticks + 1, round((now_us - self._start_us) / TICK_US))
        period = (number - 1) // TICKS_PER_PERIOD
        direction, turn = number % 2, number // 2 % max(1, len(self._targets))
        for rank, reader in self._readers.items():
            if rank in self._lost_in:
                continue
            try:
                reader.tick(now_us, period)
                if number % TICKS_PER_PERIOD == 0:
                    reader.boundary(now_us, period)
                if number % SLOW_TICKS == 0:
                    reader.read_slow()
                if rank == turn:
                    reader.read_traffic(direction)
            except GpuLost as lost:
                self._lose(rank, lost, now_us)
        yield from self._known(now_us)

    def finish(self, now_us: int) -> Iterator[Event]:
        """The periods that have ended, with what is known of them."""
        for rank, reader in self._readers.items():
            if rank not in self._lost_in:
                try:
                    reader.last_look(now_us)
                except GpuLost as lost:
                    self._lose(rank, lost, now_us)
        yield from self._known(now_us, patience_us=0)

    def _known(self, now_us: int, patience_us: int = PATIENCE_US) -> Iterator[Event]:
        yield from self._losses
        self._losses.clear()
        while True:
            number = self._next_period
            from_us = self._start_us + number * PERIOD_US
            until_us = from_us + PERIOD_US
            waiting = any(not reader.known_until(until_us) for rank, reader in self._readers.items() if rank not in self._lost_in)
            if now_us < until_us or (waiting and now_us < until_us + patience_us):
                return
            end_ns = (number + 1) * PERIOD_US * 1000
            readings = [
                reader.reading(number, from_us, until_us, end_ns).as_dict()
                if (reader := self._readers.get(rank)) and number < self._lost_in.get(rank, number + 1)
                else None
                for rank in range(len(self._targets))
            ]
            yield {"event": "tick", "end_ns": end_ns, "gpus": readings}
            self._next_period += 1

    def _lose(self, rank: int, lost: GpuLost, now_us: int) -> None:
        self._lost_in[rank] = (now_us - self._start_us) // PERIOD_US
        after_s = (now_us - self._start_us) / 1e6
        message = (
            f"{self._targets[rank].label} fell off the bus {after_s:.1f} s after sampling began (NVML: {lost}); its lane ends here. "
            "The kernel log (dmesg) says more; usually the node has to be restarted."
        )
        self._losses.append({"event": "lost", "rank": rank, "after_s": round(after_s, 3), "message": message})


def start_event(targets: Sequence[Target], notes: Sequence[str], watch: Watch, *, unix_ns: int = 0) -> Event:
    """The first line: which devices, in CUDA's order, what cannot be read of them, and when the first period begins."""
    devices = [
        {
            "rank": rank, "gpu": target.gpu.index, "name": target.gpu.name, "uuid": target.gpu.uuid,
            "mig": target.instance.uuid if target.instance else None, "label": target.label,
            "memory_gib": target.instance.memory_gib if target.instance else target.gpu.memory_gib,
            "power_limit_w": watch.power_limit_w(rank),
        }
        for rank, target in enumerate(targets)
    ]  # fmt: skip
    return {
        "event": "start", "source": "nvml", "period_ns": PERIOD_US * 1000, "monotonic_ns": time.monotonic_ns(), "unix_ns": unix_ns,
        "devices": devices,
        "gaps": {str(rank): gaps for rank, gaps in watch.gaps().items()}, "notes": list(notes),
    }  # fmt: skip


def sample(seconds: float | None, devices: Sequence[int] | None = None) -> int:
    """Sample until told to end, or for so many seconds; `devices` are numbers of CUDA's, all by default. Returns an exit code."""
    open_nvml()
    chosen = visible(take_inventory().gpus, os.environ)
    missing = [number for number in devices or () if number >= len(chosen.targets)]
    if not chosen.targets or missing:
        there = f"CUDA shows {len(chosen.targets)} GPUs, so there is no device {missing[0]}" if chosen.targets else ""
        raise NvmlUnusable("; ".join(chosen.notes) or there or "the NVIDIA driver reports no GPU")
    targets = chosen.targets if devices is None else tuple(chosen.targets[number] for number in devices)
    start_us, unix_ns = _on_the_grid()
    watch = Watch(targets, now_us=start_us)
    _print([start_event(targets, chosen.notes, watch, unix_ns=unix_ns)])
    parent = os.getppid()
    number = 0
    try:
        while watch.alive:
            now_us = _clock_us()
            number = max(number + 1, (now_us - start_us) // TICK_US)  # late: the missed ticks are not made up for
            if seconds is not None and number * TICK_US > seconds * 1e6:
                break
            time.sleep(max(0.0, (start_us + number * TICK_US - now_us) / 1e6))
            if os.getppid() != parent:
                return 0
            _print(watch.tick(_clock_us()))
        _print(watch.finish(_clock_us()))
        why = "" if watch.alive else "every GPU was lost"
    except KeyboardInterrupt:
        _print(watch.finish(_clock_us()))
        why = ""
    _print([{"event": "end", "reason": why}])
    return 1 if why else 0


def _on_the_grid() -> tuple[int, int]:
    """Wait for the next whole period of the system's clock: samplers of several nodes keep to the same periods.

    Returns that moment in microseconds of our clock, and in nanoseconds of the system's.
    """
    now_ns = time.time_ns()
    unix_ns = now_ns - now_ns % SAMPLE_PERIOD_NS + SAMPLE_PERIOD_NS
    time.sleep((unix_ns - now_ns) / 1e9)
    return (time.monotonic_ns() - (time.time_ns() - unix_ns)) // 1000, unix_ns


def _print(events: Iterator[Event] | Sequence[Event]) -> None:
    lines = "".join(_encode(event) + "\n" for event in events)
    if lines:
        sys.stdout.write(lines)
        sys.stdout.flush()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Exit codes: 0 done, 1 nothing can be sampled, 2 unusable arguments."""
    parser = argparse.ArgumentParser(prog="python -m scenarios.nvml.sampler", description="Sample the GPUs that CUDA shows, as JSON lines.")
    parser.add_argument("--seconds", type=float, help="end after so long (default: when the parent ends)")
    parser.add_argument("--devices", help="numbers of CUDA's, with commas (default: all that CUDA shows)")
    options = parser.parse_args(arguments)
    if options.devices is not None and not re.fullmatch(r"\d{1,3}(,\d{1,3})*", options.devices):
        parser.error(f"devices={options.devices!r}: must be numbers with commas between them, such as 0,1")
    die_with_parent()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return sample(options.seconds, None if options.devices is None else [int(number) for number in options.devices.split(",")])
    except NvmlUnusable as error:
        print(json.dumps({"event": "end", "reason": str(error)}))
        print(f"GPUs cannot be sampled: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to be flushed at exit
        return 0


if __name__ == "__main__":
    sys.exit(main())
