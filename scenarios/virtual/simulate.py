"""A correctly sharded run of a few steps without any process: all ranks' virtual devices in one loop.

The baseline of `speedup_vs_one_gpu`, and the engine of predictions. It calls the same device code as the ranks of a real run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from scenarios.costs import pricing
from scenarios.costs.models import MODELS
from scenarios.costs.shapes import StepCosts
from scenarios.telemetry import Span
from scenarios.virtual.device import DeviceSetup, VirtualDevice

WORKERS = 8
"""DataLoader workers of each rank."""


def _drop(span: Span) -> None:
    """Nobody watches these devices."""


@lru_cache(maxsize=256)
def step_seconds(
    *, model: str, gpu: str, precision: str, batch: int, world: int, seed: int = 0,
    decode: bool = True, decode_on_gpu: bool = True, steps: int = 24, warm_up: int = 8,
) -> float:
    """Mean virtual seconds of one steady step of `world` ranks with `batch` samples each.

    `decode=False` trains on ready-made (synthetic) samples, as most published figures do.
    """
    costs = pricing.step_costs(model=model, gpu=gpu, precision=precision, batch=batch, world=world)
    cpu_ns = cpu_decode_ns_per_sample(model=model, world=world) if decode and not decode_on_gpu else 0

    def feed(device: VirtualDevice) -> None:
        if decode:
            device.load(batch, cpu_ns)
            device.decode(costs)

    return steady_step_seconds(
        costs, gpu=gpu, world=world, seed=seed, decode_on_gpu=decode_on_gpu, feed=feed, steps=steps, warm_up=warm_up
    )


def steady_step_seconds(
    costs: StepCosts, *, gpu: str, world: int, steps: int, warm_up: int, seed: int = 0, decode_on_gpu: bool = True,
    feed: Callable[[VirtualDevice], None] = lambda device: None,
) -> float:
    """Mean virtual seconds of one step of `world` devices that all cost the same, the first `warm_up` of `steps` left out.

    `feed` brings a device its batch at the start of each step; by default the samples are there.
    """
    devices = [
        VirtualDevice(DeviceSetup(rank=rank, world=world, gpu=gpu, seed=seed, workers=WORKERS, decode_on_gpu=decode_on_gpu), _drop)
        for rank in range(world)
    ]
    ends_ns: list[int] = []
    for _ in range(steps):
        for device in devices:
            feed(device)
            device.forward(costs)
        arrivals = [device.arrival(costs) for device in devices]
        for device in devices:
            device.backward(arrivals)
            device.optimizer(costs)
        ends_ns.append(max(device.compute_ns for device in devices))
    return (ends_ns[-1] - ends_ns[warm_up - 1]) / (steps - warm_up) / 1e9


HOST_CORES = 64
"""Physical cores of the host that the GPUs share. Our choice, not fitted."""

CPU_DECODE_NS = 9_000_000
"""JPEG decoding, random resized crop and flip of one ImageNet sample on one core, about 110 images/s. Our estimate, not fitted."""


def cpu_decode_ns_per_sample(*, model: str, world: int) -> int:
    """Worker time per sample when samples are decoded and augmented on the CPU; it grows once workers outnumber cores."""
    if not MODELS[model].decodes:
        return 0
    return round(CPU_DECODE_NS * max(1.0, world * WORKERS / HOST_CORES))
