"""A correctly sharded run of a few steps without any process: all ranks' virtual devices in one loop.

The baseline of `speedup_vs_one_gpu`, and the engine of predictions. It calls the same device code as the ranks of a real run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from scenarios.costs import pricing
from scenarios.costs.shapes import StepCosts
from scenarios.telemetry import Span
from scenarios.virtual.device import DeviceSetup, VirtualDevice

WORKERS = 8
"""DataLoader workers of each rank."""


def _drop(span: Span) -> None:
    """Nobody watches these devices."""


@lru_cache(maxsize=256)
def step_seconds(
    *, model: str, gpu: str, precision: str, batch: int, world: int, seed: int = 0, workers: int = WORKERS,
    decode: bool = True, decode_on_gpu: bool = True, steps: int = 24, warm_up: int = 8,
) -> float:
    """Mean virtual seconds of one steady step of `world` ranks with `batch` samples each, each rank with its own loader.

    `decode=False` trains on ready-made (synthetic) samples, as most published figures do.
    """
    costs = pricing.step_costs(model=model, gpu=gpu, precision=precision, batch=batch, world=world)

    def feed(device: VirtualDevice) -> None:
        if decode:
            device.load(batch)
            device.decode(costs)

    return steady_step_seconds(
        costs, gpu=gpu, world=world, model=model, seed=seed, workers=workers, decode_on_gpu=decode_on_gpu, feed=feed, steps=steps,
        warm_up=warm_up,
    )


def steady_step_seconds(
    costs: StepCosts, *, gpu: str, world: int, steps: int, warm_up: int, model: str = "", seed: int = 0, workers: int = WORKERS,
    decode_on_gpu: bool = True, link: str = "", nodes: int = 1, network: str = "",
    feed: Callable[[VirtualDevice], None] = lambda device: None,
) -> float:
    """Mean virtual seconds of one step of `world` devices that all cost the same, the first `warm_up` of `steps` left out.

    `feed` brings a device its batch at the start of each step; by default the samples are there, and `model` does not matter.
    """
    devices = [
        VirtualDevice(
            DeviceSetup(
                rank=rank, world=world, gpu=gpu, model=model, seed=seed, workers=workers, decode_on_gpu=decode_on_gpu, loaders=world,
                link=link, nodes=nodes, network=network,
            ),
            _drop,
        )
        for rank in range(world)
    ]
    ends_ns: list[int] = []
    for _ in range(steps):
        for device in devices:
            feed(device)
            device.forward(costs)
        train_together(devices, costs)
        ends_ns.append(max(device.compute_ns for device in devices))
    return (ends_ns[-1] - ends_ns[warm_up - 1]) / (steps - warm_up) / 1e9


def train_together(devices: Sequence[VirtualDevice], costs: StepCosts) -> None:
    """Backward pass, all-reduces and optimizer of all ranks, whose forward passes are placed."""
    arrivals = [device.arrival(costs) for device in devices]
    for device in devices:
        device.backward(arrivals)
        device.optimizer(costs)
