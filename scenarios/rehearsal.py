"""A run's timing without processes and without torch: all ranks' virtual devices in one loop, in the order of the catalog's scripts.

It calls the same device code as the ranks of a real run, so its spans are a real run's to the nanosecond; weights, losses and which samples
a rank sees are not rehearsed. The physics of virtual time are tested on it. Owns that loop; must not decide what anything costs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.costs import pricing
from scenarios.costs.models import MODELS
from scenarios.costs.shapes import StepCosts
from scenarios.recorder import Recorder, StepState
from scenarios.telemetry import Sample, Span
from scenarios.virtual.device import DeviceSetup, Traffic, VirtualDevice
from scenarios.virtual.hand_off import hand_out_by_nccl, reach_nccl, receive_over_host, send_over_host

SRC = 0
"""The rank that hands out."""


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What all ranks did in some steps."""

    spans: tuple[Span, ...]
    """In program order of each rank."""
    ends_ns: tuple[tuple[int, ...], ...]
    """When each rank ended each step: `ends_ns[step][rank]`."""
    comm_ends_ns: tuple[tuple[int, ...], ...]
    """When each rank left the last collective of each step."""
    traffic: tuple[Traffic, ...]
    """What each rank exchanged with the others."""

    @property
    def step_ends_ns(self) -> tuple[int, ...]:
        """When the last rank ended each step."""
        return tuple(map(max, self.ends_ns))

    def step_seconds(self, warm_up: int) -> float:
        """Mean seconds of a step after the first `warm_up`."""
        return (self.step_ends_ns[-1] - self.step_ends_ns[warm_up - 1]) / (len(self.step_ends_ns) - warm_up) / 1e9


def rehearse(config: RunConfig, *, steps: int) -> Rehearsal:
    """The first `steps` steps of `config`, each with a batch of `config.batch`: a script that changes its batch is not rehearsed."""
    world = config.gpus
    costs = pricing.step_costs(model=config.model, gpu=config.gpu, precision=config.precision, batch=config.batch, world=world)
    spans: list[Span] = []
    devices = [VirtualDevice(DeviceSetup.of(config, rank=rank, world=world), spans.append) for rank in range(world)]
    ends_ns, comm_ends_ns = [], []
    for _ in range(steps):
        if SCENARIOS[config.scenario].hands_out:
            _hand_out(devices, costs, config)
        else:
            for device in devices:
                device.load(config.batch)
                device.decode(costs)
        for device in devices:
            device.forward(costs)
        arrivals = [device.arrival(costs) for device in devices]
        for device in devices:
            device.backward(arrivals)
        comm_ends_ns.append(tuple(device.comm_ns for device in devices))
        for device in devices:
            device.optimizer(costs)
        ends_ns.append(tuple(device.compute_ns for device in devices))
    return Rehearsal(
        spans=tuple(spans), ends_ns=tuple(ends_ns), comm_ends_ns=tuple(comm_ends_ns), traffic=tuple(device.traffic for device in devices)
    )


def samples_of_rehearsal(config: RunConfig, rehearsal: Rehearsal) -> tuple[Sample, ...]:
    """The samples of all periods that were over when the last rank ended its last step. Which samples are distinct is not rehearsed."""
    recorder = Recorder(config)
    parts = pricing.memory(model=config.model, gpu=config.gpu, precision=config.precision, batch=config.batch, world=config.gpus)
    steps_per_epoch = MODELS[config.model].epoch_samples / config.batch / config.gpus
    by_step: dict[tuple[int, int], list[Span]] = defaultdict(list)
    for span in rehearsal.spans:
        by_step[span.step, span.rank].append(span)
    for step, ends_ns in enumerate(rehearsal.ends_ns):
        for rank, end_ns in enumerate(ends_ns):
            state = StepState(
                end_ns=end_ns, step=step + 1, progress=(step + 1) / steps_per_epoch, learning_rate=None,
                memory_gib=parts.total_gib, apart=0.0,
            )
            recorder.step(rank, state, by_step[step, rank])
    return tuple(recorder.samples)


def _hand_out(devices: list[VirtualDevice], costs: StepCosts, config: RunConfig) -> None:
    """One global batch: loaded and decoded by one rank, then handed to all."""
    source = devices[SRC]
    for _ in devices:
        source.load(config.batch)
    for _ in devices:
        source.decode(costs)
    shard_bytes = costs.decoded_bytes
    if config.hand_off == "cpu":
        sent_ns = send_over_host(source, shard_bytes)
        for device, at_ns in zip(devices, sent_ns, strict=True):
            receive_over_host(device, shard_bytes, src=SRC, sent_ns=at_ns)
    else:
        last_ns = max(map(reach_nccl, devices))
        for device in devices:
            hand_out_by_nccl(device, shard_bytes, src=SRC, last_ns=last_ns)

