"""A whole run in one process, in about a second: the summary that a real run of the same config has, to the last digit.

Timing is rehearsed by `scenarios.rehearsal`; which samples a rank sees, what fits into its GPU and what its weights become is worked out
here, in the order of the catalog's scripts. That it is what a real run does is held by tests/scenarios/engine/test_rehearsed.py; of the
checksums of weights, which agree: sums are taken in another order here, and differ in the last bit.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from math import ceil
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import MultiStepLR
from torch.utils.data import DataLoader, DistributedSampler

from scenarios.catalog import PAUSE_EVERY, SCENARIOS, patience_s
from scenarios.config import WATCHED_EPOCHS, RunConfig
from scenarios.costs import pricing
from scenarios.costs.gpus import GPUS
from scenarios.costs.models import MODELS
from scenarios.costs.shapes import MemoryParts, StepCosts
from scenarios.recorder import Recorder, StepState
from scenarios.rehearsal import Ranks
from scenarios.settings import load_settings
from scenarios.summary import Tally, summarise
from scenarios.worker.data import ProxyNetwork, numbered_rows
from scenarios.worker.report import pack_span
from scenarios.worker.virtual_stage import ACTIVATION_TENSORS, PEER_LOST_S

REHEARSED = frozenset(SCENARIOS) - {"data_parallel", "shared_validation"}
TRAINED = REHEARSED - {"accumulate", "accumulate_sync", "uneven_inputs", "uneven_joined"}
"""Whose weights are worked out as well, where they are asked for."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one rank trains on in one step: a batch, or several whose gradients are added up."""

    batches: Sequence[Sequence[int]]
    """Serial numbers."""
    steps_per_epoch: int
    pause: bool
    """Whether rank 0 pauses after this step, where the script does so."""

    @property
    def serials(self) -> array[int]:
        return array("i", [serial for batch in self.batches for serial in batch])


@lru_cache(maxsize=8)
def _shuffled(size: int, batch: int, seed: int, epoch: int) -> tuple[list[list[int]], torch.Tensor]:
    """The batches of DataLoader(shuffle=True) in a process that has made its network first, and the state of chance after them."""
    with torch.random.fork_rng(devices=[]):
        if epoch:
            torch.set_rng_state(_shuffled(size, batch, seed, epoch - 1)[1])
        else:
            torch.manual_seed(seed)
            ProxyNetwork()
        batches = list(DataLoader(range(size), batch, shuffle=True, drop_last=True, collate_fn=list))  # type: ignore[arg-type]
        return batches, torch.get_rng_state()


def _cut(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


@lru_cache(maxsize=64)
def _shard(size: int, world: int, rank: int, seed: int, epoch: int) -> list[int]:
    sampler = DistributedSampler(range(size), world, rank, seed=seed, drop_last=True)  # type: ignore[arg-type, var-annotated]
    sampler.set_epoch(epoch)
    return list(sampler)


def _sharded(config: RunConfig, rank: int, *, batch: int, epoch: int) -> list[Sequence[int]]:
    shard = _shard(MODELS[config.model].epoch_samples, config.gpus, rank, config.seed, epoch)
    return [part for part in _cut(shard, batch) if len(part) == batch]


def _epoch(config: RunConfig, rank: int, epoch: int) -> list[Sequence[int]]:
    """The batches of one rank."""
    size, world = MODELS[config.model].epoch_samples, config.gpus
    if config.scenario == "unsharded":
        return [*_shuffled(size, config.batch, config.seed, epoch)[0]]
    if config.scenario == "rank0_loading":
        batches = _shuffled(size, config.batch, config.seed, epoch)[0]
        return [*batches[: len(batches) // world * world][rank::world]]
    if config.scenario == "lopsided_shards":
        first = rank * (size // world)
        return [[first + place for place in batch] for batch in _shuffled(size // world, config.batch, config.seed, epoch)[0]]
    batches = _sharded(config, rank, batch=config.batch, epoch=0 if config.scenario == "no_set_epoch" else epoch)
    if config.scenario.startswith("uneven_") and rank == 0:
        return batches[: len(batches) - len(batches) // 4]
    return batches


def _works(config: RunConfig, rank: int) -> Iterator[Work]:
    """What a rank would train on, step after step, if nothing ended it."""
    if config.scenario == "large_batch":
        for doubling in range(12):
            batches = _sharded(config, rank, batch=max(1, config.batch // 4) * 2**doubling, epoch=doubling)
            for batch in islice(batches, 12):
                yield Work(batches=[batch], steps_per_epoch=len(batches), pause=False)
        return
    together = SCENARIOS[config.scenario].micro_batches
    for epoch in range(config.epochs or (WATCHED_EPOCHS if config.steps is None else config.steps)):
        batches = _epoch(config, rank, epoch)
        for number, part in enumerate(_cut(batches, together), start=1):
            yield Work(batches=part, steps_per_epoch=ceil(len(batches) / together), pause=number % PAUSE_EVERY == 0)


class _Replicas:
    """The weights of all ranks, trained one rank after the other."""

    def __init__(self, config: RunConfig) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            network = ProxyNetwork()
        self._samples, self._labels = numbered_rows(MODELS[config.model].epoch_samples)
        self._networks = [deepcopy(network) for _ in range(config.gpus)]
        self._optimizers = [torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9) for network in self._networks]
        self._schedulers = [
            MultiStepLR(optimizer, milestones=[_lowered_after(config, rank)]) for rank, optimizer in enumerate(self._optimizers)
        ]

    def step(self, works: Sequence[Work]) -> None:
        for network, work in zip(self._networks, works, strict=True):
            network.zero_grad()
            rows = torch.as_tensor(work.batches[0])
            cross_entropy(network(self._samples[rows]), self._labels[rows]).backward()
        for parameters in zip(*(network.parameters() for network in self._networks), strict=True):
            mean = torch.mean(torch.stack([parameter.grad for parameter in parameters]), dim=0)
            for parameter in parameters:
                parameter.grad = mean.clone()
        for optimizer, scheduler in zip(self._optimizers, self._schedulers, strict=True):
            optimizer.step()
            scheduler.step()

    def checksum(self, rank: int) -> str:
        parts = [parameter.detach().contiguous().numpy().tobytes() for parameter in self._networks[rank].parameters()]
        return sha256(b"".join(parts)).hexdigest()[:16]


def _lowered_after(config: RunConfig, rank: int) -> int:
    """The step after which a rank lowers its learning rate."""
    return 8 + 4 * rank if config.scenario == "scheduler_desync" else 8


@dataclass(kw_only=True)
class _Rank:
    works: Iterator[Work]
    memory_gib: float = 0.0
    progress: float = 0.0
    steps: int = 0
    told: int = 0
    """How many of its spans have been reported."""
    last: Work | None = None


@dataclass
class _Run:
    config: RunConfig
    ranks: list[_Rank] = field(init=False)

    def __post_init__(self) -> None:
        self.stage = Ranks(self.config)
        self.tally = Tally(config=self.config)
        self.recorder = Recorder(self.config)
        self.ranks = [_Rank(works=_works(self.config, rank)) for rank in range(self.config.gpus)]

    def costs(self, batch: Sequence[int]) -> StepCosts:
        return self.stage.costs(len(batch), seq_len=MODELS[self.config.model].batch_length(batch))

    def carry_out(self, replicas: _Replicas | None) -> dict[str, Any]:
        """Take steps until the run ends, in one way or another."""
        while True:
            works = [next(rank.works, None) for rank in self.ranks]
            present = [rank for rank, work in enumerate(works) if work is not None]
            if not present:
                return self._end("finished", replicas)
            full = self._take_memory(works)
            if full or (len(present) < len(works) and self.config.scenario != "uneven_joined"):
                return self._break_off(works, full)
            self._train(works)
            if replicas:
                replicas.step([work for work in works if work is not None])
            if self._complete():
                return self._end("finished", replicas)
            if works[0] is not None and works[0].pause:
                self.stage.pause()

    def _memory(self, number: int, batch: Sequence[int]) -> MemoryParts:
        config = self.config
        return pricing.memory(
            model=config.model, gpu=config.gpu, precision=config.precision, batch=len(batch), world=config.gpus,
            seq_len=MODELS[config.model].batch_length(batch),
            guests=config.gpus - 1 if config.scenario == "no_set_device" and number == 0 else 0,
        )

    def _take_memory(self, works: Sequence[Work | None]) -> list[int]:
        """The ranks whose batch does not fit into their GPU."""
        full = []
        for number, work in enumerate(works):
            if work is not None:
                self.ranks[number].last, self.ranks[number].memory_gib = work, self._memory(number, work.batches[0]).total_gib
                full += [number] if self.ranks[number].memory_gib > GPUS[self.config.gpu].memory_gib else []
        return full

    def _train(self, works: Sequence[Work | None]) -> None:
        devices = self.stage.devices
        present = [rank for rank, work in enumerate(works) if work is not None]
        parts = max(len(work.batches) for work in works if work is not None)
        for part in range(parts):
            batches = [work.batches[part] if work is not None else [] for work in works]
            self.stage.feed(len(batches[present[0]]), present)
            idle = self.stage.costs(self.config.batch).without_batch
            costs = [self.costs(batch) if batch else idle for batch in batches]
            for rank in present:
                devices[rank].forward(costs[rank])
            if part == parts - 1 or self.config.scenario == "accumulate_sync":
                self._last_collective_ns = self.stage.backward(costs)
                continue
            alone = pricing.step_costs(
                model=self.config.model, gpu=self.config.gpu, precision=self.config.precision, batch=self.config.batch, world=1,
                seq_len=MODELS[self.config.model].batch_length(batches[present[0]]),
            )
            for device in devices:
                device.accumulate(alone)
        for rank, work in enumerate(works):
            if work is None:
                devices[rank].shadow_step()
            else:
                devices[rank].optimizer(costs[rank])
                self.ranks[rank].steps += 1
                self.ranks[rank].progress += 1.0 / work.steps_per_epoch
            self._report(rank, trained=work is not None)

    def _complete(self) -> bool:
        limit_s = self.config.view_s
        return self.stage.devices[0].step == self.config.steps or (limit_s is not None and self._last_collective_ns >= limit_s * 1e9)

    def _break_off(self, works: Sequence[Work | None], full: Sequence[int]) -> dict[str, Any]:
        """Those whose memory is full end within the forward pass; whoever waits for one that does not come spins until it is ended."""
        limit_gib = GPUS[self.config.gpu].memory_gib
        waits_s = PEER_LOST_S if full else patience_s(self.config.scenario, load_settings({}).collective_limit_s)
        present = [rank for rank, work in enumerate(works) if work is not None]
        self.stage.feed(len(next(work for work in works if work is not None).batches[0]), present)
        for number, work in enumerate(works):
            if work is None:
                self.recorder.left(number)
                continue
            rank, device, batch = self.ranks[number], self.stage.devices[number], work.batches[0]
            costs = self.costs(batch)
            if number in full:
                activations_gib = self._memory(number, batch).activations_gib
                static_gib, tensor_gib = rank.memory_gib - activations_gib, activations_gib / ACTIVATION_TENSORS
                fitting = max(0, int((limit_gib - static_gib) / tensor_gib))
                rank.memory_gib = min(limit_gib, static_gib + fitting * tensor_gib)
                device.forward(costs, fraction=fitting / ACTIVATION_TENSORS)
            else:
                device.forward(costs)
                device.wait_in_vain(costs, round(waits_s * 1e9))
            self._report(number, trained=False)
        return self._end("out_of_memory" if full else "timeout", None, full)

    def _report(self, number: int, *, trained: bool) -> None:
        rank, device = self.ranks[number], self.stage.devices[number]
        assert rank.last is not None
        spans = self.stage.spans[number][rank.told :]
        rank.told += len(spans)
        serials = rank.last.serials if trained else array("i")
        progress = round(rank.progress, 9)
        processes = self.config.gpus if self.config.scenario == "no_set_device" and number == 0 else 1
        message = {
            "step": device.step, "trained": trained, "progress": progress, "steps_per_epoch": rank.last.steps_per_epoch,
            "batch": len(rank.last.batches[-1]), "memory_gib": rank.memory_gib, "end_ns": device.compute_ns,
            "spans": [pack_span(span) for span in spans],
        }
        self.tally.step(number, message, serials)
        lowered = rank.steps > _lowered_after(self.config, number)
        state = StepState(
            end_ns=device.compute_ns, step=device.step, progress=progress, memory_gib=rank.memory_gib, apart=0.0, processes=processes,
            learning_rate=(0.1 * 0.1 if lowered else 0.1) if rank.steps else None,
        )
        self.recorder.step(number, state, spans, serials)

    def _end(self, outcome: str, replicas: _Replicas | None, full: Sequence[int] = ()) -> dict[str, Any]:
        if replicas and outcome == "finished":
            self.tally.checksums = {rank: replicas.checksum(rank) for rank in range(self.config.gpus)}
        self.recorder.finish(broke_off=outcome != "finished")
        return summarise(
            self.tally, self.recorder.samples, outcome=outcome, source="virtual", digest=self.recorder.digest, full=full
        )


def rehearsed_summary(config: RunConfig, *, weights: bool) -> dict[str, Any]:
    """The summary of a run of `config` on virtual GPUs; its `replica_checksums` only with `weights`."""
    assert config.scenario in (TRAINED if weights else REHEARSED)
    return _Run(config).carry_out(_Replicas(config) if weights else None)
