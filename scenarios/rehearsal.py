"""A run's timing without processes and without torch: all ranks' virtual devices in one loop, in the order of the catalog's scripts.

It calls the same device code as the ranks of a real run, so its spans are a real run's to the nanosecond; weights, losses and which samples
a rank sees are not rehearsed. The physics of virtual time are tested on it. Owns that loop; must not decide what anything costs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from scenarios.catalog import PAUSE_EVERY, SCENARIOS
from scenarios.config import RunConfig
from scenarios.costs import one_process, pricing
from scenarios.costs.models import MODELS
from scenarios.costs.shapes import StepCosts
from scenarios.recorder import Recorder, StepState
from scenarios.telemetry import Sample, Span
from scenarios.virtual.device import DeviceSetup, Traffic, VirtualDevice
from scenarios.virtual.hand_off import hand_out_by_nccl, receive_over_host, send_over_host
from scenarios.virtual.one_process import OneProcess

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


class Ranks:
    """All ranks of a run, which take their steps together."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.spans: list[list[Span]] = [[] for _ in range(config.gpus)]
        """Of each rank, in program order."""
        self.devices = [
            VirtualDevice(DeviceSetup.of(config, rank=rank, world=config.gpus), spans.append) for rank, spans in enumerate(self.spans)
        ]

    def costs(self, batch: int, *, seq_len: int | None = None) -> StepCosts:
        config = self.config
        return pricing.step_costs(
            model=config.model, gpu=config.gpu, precision=config.precision, batch=batch, world=config.gpus, seq_len=seq_len
        )

    def feed(self, batch: int, ranks: Sequence[int]) -> None:
        """Bring each of `ranks` its batch: from its own loader, or handed out to all by one of them."""
        costs = self.costs(batch)
        if SCENARIOS[self.config.scenario].hands_out:
            _hand_out(self.devices, costs, batch, over_host=self.config.hand_off == "cpu")
            return
        for rank in ranks:
            self.devices[rank].load(batch)
            self.devices[rank].decode(costs)

    def backward(self, costs: Sequence[StepCosts]) -> int:
        """The backward pass of all, given what each rank's batch costs; returns when its last collective ended."""
        arrivals = [device.arrival(own) for device, own in zip(self.devices, costs, strict=True)]
        together = [device.backward(arrivals) for device in self.devices]
        return together[-1].collectives[-1].end_ns

    def pause(self) -> None:
        """What one rank alone does between two steps, where the scenario has it."""
        pause, device, config = SCENARIOS[self.config.scenario].pause, self.devices[SRC], self.config
        if pause == "validate":
            left = MODELS[config.model].held_out_samples
            while left:
                batch = min(left, config.batch)
                device.load_held_out(batch)
                device.decode(self.costs(batch))
                device.validate(self.costs(batch))
                left -= batch
            device.end_validation()
        elif pause == "checkpoint":
            device.checkpoint(pricing.checkpoint_bytes(model=config.model))


def rehearse(config: RunConfig, *, steps: int) -> Rehearsal:
    """The first `steps` steps of `config`, each with a batch of `config.batch`: a script that changes its batch is not rehearsed."""
    if SCENARIOS[config.scenario].one_process:
        return _rehearse_one_process(config, steps)
    ranks = Ranks(config)
    costs = ranks.costs(config.batch)
    ends_ns, comm_ends_ns = [], []
    steps_per_epoch = max(1, MODELS[config.model].epoch_samples // config.gpus // config.batch)
    for step in range(steps):
        if step and ((step - 1) % steps_per_epoch + 1) % PAUSE_EVERY == 0:
            ranks.pause()
        ranks.feed(config.batch, range(config.gpus))
        for device in ranks.devices:
            device.forward(costs)
        ranks.backward([costs] * config.gpus)
        for device in ranks.devices:
            device.optimizer(costs)
        comm_ends_ns.append(tuple(device.comm_ns for device in ranks.devices))
        ends_ns.append(tuple(device.compute_ns for device in ranks.devices))
    return Rehearsal(
        spans=tuple(span for spans in ranks.spans for span in spans), ends_ns=tuple(ends_ns), comm_ends_ns=tuple(comm_ends_ns),
        traffic=tuple(device.traffic for device in ranks.devices),
    )


def _rehearse_one_process(config: RunConfig, steps: int) -> Rehearsal:
    """As `torch.nn.DataParallel` steps."""
    spans: list[Span] = []
    devices = [VirtualDevice(DeviceSetup.of(config, rank=rank, world=config.gpus), spans.append) for rank in range(config.gpus)]
    together = OneProcess(devices)
    step = one_process.costs_by_threads(
        model=config.model, gpu=config.gpu, precision=config.precision, batch=config.batch, gpus=config.gpus
    )
    encoded_bytes = step.encoded_bytes if config.preprocess == "gpu" else step.decoded_bytes
    outputs_bytes = one_process.outputs_bytes(model=config.model, batch=config.batch)
    ends_ns = []
    for _ in range(steps):
        together.load(config.batch * config.gpus)
        together.upload(encoded_bytes * config.gpus)
        together.forward(step, scattered_bytes=encoded_bytes, gathered_bytes=outputs_bytes)
        together.loss(config.batch)
        together.backward(step, gathered_bytes=outputs_bytes)
        together.optimizer(step)
        ends_ns.append((together.first.compute_ns,) * config.gpus)
    return Rehearsal(
        spans=tuple(spans), ends_ns=tuple(ends_ns), comm_ends_ns=(), traffic=tuple(device.traffic for device in devices)
    )


def samples_of_rehearsal(config: RunConfig, rehearsal: Rehearsal) -> tuple[Sample, ...]:
    """The samples of all periods that were over when the last rank ended its last step. Which samples are distinct is not rehearsed."""
    recorder = Recorder(config)
    steps_per_epoch = MODELS[config.model].epoch_samples / config.batch / config.gpus
    by_step: dict[tuple[int, int], list[Span]] = defaultdict(list)
    for span in rehearsal.spans:
        by_step[span.step, span.rank].append(span)
    for step, ends_ns in enumerate(rehearsal.ends_ns):
        for rank, end_ns in enumerate(ends_ns):
            state = StepState(
                end_ns=end_ns, step=step + 1, progress=(step + 1) / steps_per_epoch, learning_rate=None,
                memory_gib=_memory_gib(config, rank), apart=0.0,
            )
            recorder.step(rank, state, by_step[step, rank])
    return tuple(recorder.samples)


def _memory_gib(config: RunConfig, rank: int) -> float:
    knobs = {"model": config.model, "gpu": config.gpu, "precision": config.precision, "batch": config.batch}
    if SCENARIOS[config.scenario].one_process:
        return one_process.memory_of(**knobs, gpus=config.gpus, rank=rank).total_gib
    return pricing.memory(**knobs, world=config.gpus).total_gib


def _hand_out(devices: Sequence[VirtualDevice], costs: StepCosts, batch: int, *, over_host: bool) -> None:
    """One global batch: loaded and decoded by one rank, then handed to all."""
    source = devices[SRC]
    for _ in devices:
        source.load(batch)
    for _ in devices:
        source.decode(costs)
    shard_bytes = costs.decoded_bytes
    if over_host:
        sent_ns = send_over_host(source, shard_bytes)
        for device, at_ns in zip(devices, sent_ns, strict=True):
            receive_over_host(device, shard_bytes, src=SRC, sent_ns=at_ns)
    else:
        last_ns = max(device.reach_nccl() for device in devices)
        for device in devices:
            hand_out_by_nccl(device, shard_bytes, src=SRC, last_ns=last_ns)
