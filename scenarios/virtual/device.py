"""One virtual GPU and the host thread that feeds it: logical clocks which work advances by its modelled duration.

Owns the clocks of one rank (host thread, compute, copy and communication stream) and the spans that it emits. Must not sleep, read
the wall clock or touch tensors; the exchange of clocks between ranks is the caller's (`worker/virtual_stage.py`, or `simulate.py`
which holds all ranks in one process).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scenarios.catalog import SCENARIOS
from scenarios.config import RunConfig
from scenarios.costs import pricing
from scenarios.costs.shapes import Phase, StepCosts
from scenarios.telemetry import Kind, Span, Stream
from scenarios.virtual import host
from scenarios.virtual.collective import Arrival, BackwardPass, backward_together, run_backward, run_phase
from scenarios.virtual.jitter import factor, jittered
from scenarios.virtual.loader import LoaderQueue

NCCL_SM_SHARE = 0.15
"""Share of the SMs that an all-reduce's kernel holds, moving data or spinning. Our assumption:
16 channels, one block each, of the 108 SMs of an A100."""

NCCL_PEER_SM_SHARE = 0.04
"""The same of a transfer between two GPUs, which NCCL gives fewer channels. Our assumption: four blocks."""

STEPS_AHEAD = 1
"""How many steps the host may launch ahead of its GPU: the launch queue holds about a thousand kernels, one ResNet-50 step."""


@dataclass(frozen=True, kw_only=True)
class DeviceSetup:
    """What stays the same during a run, and what every rank knows of the others."""

    rank: int
    world: int
    gpu: str
    model: str
    seed: int
    workers: int
    decode_on_gpu: bool
    loaders: int
    """How many ranks load, from rank 0 on; the others are handed their samples."""
    link: str = ""
    """What joins the GPUs; empty is the GPU's own."""
    nodes: int = 1
    """Over how many nodes the ranks are spread; predictions alone have more than one."""
    network: str = ""
    """What joins the nodes."""
    straggler: int | None = None
    """The rank whose kernels are slow."""
    straggler_pct: int = 0
    """By how much they take longer."""

    @classmethod
    def of(cls, config: RunConfig, *, rank: int, world: int) -> DeviceSetup:
        """The device of `rank` in a run of `config`."""
        return cls(
            rank=rank, world=world, gpu=config.gpu, model=config.model, seed=config.seed, workers=config.workers,
            decode_on_gpu=config.preprocess == "gpu", loaders=1 if SCENARIOS[config.scenario].one_loader else world,
            link=config.link, straggler=config.straggler, straggler_pct=config.straggler_pct,
        )

    @property
    def load_ns_per_sample(self) -> int:
        """Worker time for one sample."""
        return host.worker_ns_per_sample(
            model=self.model, decode_on_cpu=not self.decode_on_gpu, workers=self.workers, loaders=self.loaders, ranks=self.world
        )

    def pace(self, rank: int, step: int, kind: Kind) -> float:
        """Factor on the duration of a rank's kernels: jitter, and what makes a straggler slow."""
        slow = 1.0 + self.straggler_pct / 100.0 if rank == self.straggler else 1.0
        return slow * factor(self.seed, rank, step, kind)


@dataclass(kw_only=True, slots=True)
class Traffic:
    """Bytes that a rank exchanged with others."""

    sent: int = 0
    received: int = 0


class VirtualDevice:
    """The clocks of one rank. Methods take their work in program order and never return before it is placed."""

    def __init__(self, setup: DeviceSetup, emit: Callable[[Span], None]) -> None:
        self.setup = setup
        self.step = 0
        self.host_ns = self.compute_ns = self.copy_ns = self.comm_ns = 0
        self._emit = emit
        self.traffic = Traffic()
        self._loads = 0
        self._held_out: LoaderQueue | None = None
        self._held_out_loads = 0
        self._queue = LoaderQueue(workers=setup.workers)
        self._copy_factor = host.copy_factor(setup.world)
        self._upload_factor = host.upload_factor(setup.gpu, rank=setup.rank, loaders=setup.loaders)
        self._step_ends_ns: list[int] = []

    def load(self, samples: int) -> None:
        """The host takes the next batch of `samples` from the loader, waiting for it if it must; without workers it makes it itself."""
        fetch_ns = jittered(samples * self.setup.load_ns_per_sample, self.setup.seed, host.JITTER_RANK, self._loads, "load")
        self._loads += 1
        self._take("load", self._queue, fetch_ns)

    def decode(self, costs: StepCosts) -> None:
        """Copy one encoded batch to the GPU and decode it there."""
        self.upload(costs.encoded_bytes if self.setup.decode_on_gpu else costs.decoded_bytes, factor=self._upload_factor)
        if self.setup.decode_on_gpu:
            self._compute("decode" if self._held_out is None else "validate", costs.decode)

    def load_held_out(self, samples: int) -> None:
        """The next batch of a pass over held-out samples, whose loader begins when the pass does."""
        if self._held_out is None:
            self._held_out = LoaderQueue(workers=self.setup.workers, fresh_ns=self.host_ns)
        fetch_ns = jittered(samples * self.setup.load_ns_per_sample, self.setup.seed, host.JITTER_RANK, self._held_out_loads, "validate")
        self._held_out_loads += 1
        self._take("validate", self._held_out, fetch_ns)

    def validate(self, costs: StepCosts) -> None:
        """The forward pass of such a batch. One without gradients costs what one with them does: our assumption."""
        self._compute("validate", costs.forward)

    def end_validation(self) -> None:
        """The host reads the result, and so waits for the GPU. Nothing happens where no pass is under way."""
        if self._held_out is not None:
            self._host("validate", self.compute_ns)
            self._held_out = None

    def checkpoint(self, nbytes: int) -> None:
        """The host fetches what is to be kept from the GPU, pickles and writes it; nothing else is launched meanwhile."""
        self.download(nbytes)
        duration_ns = jittered(host.checkpoint_ns(nbytes), self.setup.seed, self.setup.rank, self.step, "checkpoint")
        self._host("checkpoint", self.host_ns + duration_ns)

    def upload(self, nbytes: int, *, factor: int = 1) -> None:
        """A copy from pinned memory by the copy engine, which takes `factor` times as long as alone; kernels launched later wait for it."""
        start_ns = max(self.copy_ns, self.host_ns)
        self.copy_ns = start_ns + pricing.pcie_ns(nbytes * factor, gpu=self.setup.gpu)
        self._span("copy", "copy", start_ns, self.copy_ns, self.copy_ns - start_ns, 0.0)
        self.compute_ns = max(self.compute_ns, self.copy_ns)

    def download(self, nbytes: int) -> None:
        """A blocking copy to the host: the host waits for the compute stream first, as `tensor.cpu()` does."""
        self._host("wait", self.compute_ns)
        start_ns = max(self.copy_ns, self.host_ns)
        self.copy_ns = start_ns + pricing.pcie_ns(nbytes, gpu=self.setup.gpu)
        self._span("copy", "copy", start_ns, self.copy_ns, self.copy_ns - start_ns, 0.0)
        self._host("wait", self.copy_ns)

    def host_copy(self, nbytes: int) -> None:
        """The host thread copies bytes through shared memory."""
        duration_ns = round(pricing.host_copy_ns(nbytes) * self._copy_factor)
        self._host("scatter", self.host_ns + jittered(duration_ns, self.setup.seed, self.setup.rank, self.step, "scatter"))

    def host_wait(self, until_ns: int) -> None:
        """The host thread blocks until another rank has sent something."""
        self._host("wait", until_ns)

    def reach_nccl(self) -> int:
        """When a kernel of NCCL that is launched now becomes resident: from then on it waits for the other GPUs'."""
        return max(self.comm_ns, self.compute_ns, self.host_ns)

    def join_nccl(self, kind: Kind, *, start_ns: int, end_ns: int) -> None:
        """A transfer by NCCL: this GPU's kernel is resident from when its stream is free, spins until `start_ns`, ends at `end_ns`."""
        self._comm(kind, self.reach_nccl(), start_ns, end_ns)
        self.compute_ns = max(self.compute_ns, end_ns)

    def peer_copy(self, start_ns: int, end_ns: int) -> None:
        """A copy engine moves something from or to another GPU; the compute stream goes on when it has."""
        self._span("copy", "copy", start_ns, end_ns, end_ns - start_ns, 0.0)
        self.copy_ns = self.compute_ns = end_ns

    def host_does(self, kind: Kind, until_ns: int) -> None:
        """The host thread is at something until then."""
        self._host(kind, until_ns)

    def compute(self, kind: Kind, phase: Phase) -> None:
        """Kernels launched now."""
        self._compute(kind, phase)

    def end_step(self) -> None:
        """The end of a step whose optimizer is another GPU's, of the same process."""
        self.step += 1

    def forward(self, costs: StepCosts, fraction: float = 1.0) -> None:
        """The forward pass, or its first `fraction` where memory ends it."""
        phase = costs.forward if fraction >= 1.0 else _part(costs.forward, fraction)
        self._compute("forward", phase)

    def accumulate(self, costs: StepCosts) -> None:
        """A backward pass without any all-reduce: its gradients stay on this GPU, added to those of the passes before it.

        `costs` are those of one GPU alone, for nothing is copied into buckets. Adding up is not charged, as in predictions.
        """
        for phase in costs.backward:
            self._compute("backward", phase)

    def arrival(self, costs: StepCosts) -> Arrival:
        """The clocks to exchange with the other ranks before `backward`."""
        return arrival(self.setup, rank=self.setup.rank, step=self.step, host_ns=self.host_ns, compute_ns=self.compute_ns, costs=costs)

    def backward(self, arrivals: list[Arrival]) -> BackwardPass:
        """The backward pass and its all-reduces, given the clocks of all ranks (this one's at its own index)."""
        mine = arrivals[self.setup.rank]
        costs = mine.costs
        setup = self.setup
        transfers_ns = [
            pricing.all_reduce_ns(
                nbytes, gpu=setup.gpu, world=setup.world, link=setup.link, nodes=setup.nodes, network=setup.network
            )
            for nbytes in costs.bucket_bytes
        ]
        together = backward_together(arrivals, comm_ns=self.comm_ns, all_reduce_ns=transfers_ns)
        for placed, phase in zip(together.phases[self.setup.rank], costs.backward, strict=True):
            self._span("compute", "backward", placed.start_ns, placed.end_ns, placed.busy_ns, phase.sm_active)
            self.compute_ns = placed.end_ns
            self.host_ns += phase.launch_ns
        if self.setup.world > 1:
            for placed, collective, nbytes in zip(
                together.phases[self.setup.rank], together.collectives, costs.bucket_bytes, strict=True
            ):
                self._pass_around(nbytes)
                self._comm("all_reduce", max(self.comm_ns, placed.end_ns), collective.start_ns, collective.end_ns)
        self.compute_ns = max(self.compute_ns, together.collectives[-1].end_ns)
        if self.step == 0 and self.setup.world > 1:
            self._host("wait", self.compute_ns)  # DDP rebuilds its buckets after the first iteration and agrees on them on the host
        return together

    def wait_in_vain(self, costs: StepCosts, wait_ns: int) -> None:
        """A backward pass whose first all-reduce never ends: its kernel spins for `wait_ns`, until something ends the rank."""
        mine = self.arrival(costs)
        placed = run_backward(mine, slowed_until_ns=lambda ready_ns: ready_ns + wait_ns)
        for interval, phase in zip(placed, costs.backward, strict=True):
            self._span("compute", "backward", interval.start_ns, interval.end_ns, interval.busy_ns, phase.sm_active)
            self.host_ns += phase.launch_ns
        resident_ns = max(self.comm_ns, placed[0].end_ns)
        end_ns = resident_ns + wait_ns
        self._comm("all_reduce", resident_ns, end_ns, end_ns)
        self._host("wait", end_ns)
        self.compute_ns = max(placed[-1].end_ns, end_ns)

    def shadow_step(self) -> None:
        """The end of a step that this rank had no batch for: it has only taken part in the others' collectives, and waited for them."""
        self._host("wait", self.comm_ns)
        self._step_ends_ns.append(self.compute_ns)
        self.step += 1

    def optimizer(self, costs: StepCosts) -> None:
        """The optimizer's kernels, and with them the end of the step."""
        self._compute("optimizer", costs.optimizer)
        self._step_ends_ns.append(self.compute_ns)
        if len(self._step_ends_ns) > STEPS_AHEAD:
            self._host("wait", self._step_ends_ns[-1 - STEPS_AHEAD])
        self.step += 1

    def _take(self, kind: Kind, queue: LoaderQueue, fetch_ns: int) -> None:
        self._host(kind, queue.take(self.host_ns, fetch_ns) if self.setup.workers else self.host_ns + fetch_ns)

    def _compute(self, kind: Kind, phase: Phase) -> None:
        if phase.kernels == 0:
            return
        pace = self.setup.pace(self.setup.rank, self.step, kind)
        placed = run_phase(phase, host_ns=self.host_ns, stream_ns=self.compute_ns, pace=pace)
        self._span("compute", kind, placed.start_ns, placed.end_ns, placed.busy_ns, phase.sm_active)
        self.compute_ns = placed.end_ns
        self.host_ns += phase.launch_ns

    def _pass_around(self, nbytes: int) -> None:
        """A ring: each rank sends its neighbour 2 (n-1)/n of the bytes, and receives as many from the other."""
        around = round(2 * (self.setup.world - 1) / self.setup.world * nbytes)
        self.traffic.sent += around
        self.traffic.received += around

    def _comm(self, kind: Kind, resident_ns: int, start_ns: int, end_ns: int) -> None:
        share = NCCL_PEER_SM_SHARE if kind == "scatter" else NCCL_SM_SHARE
        self._span("comm", "spin", resident_ns, start_ns, start_ns - resident_ns, share)
        self._span("comm", kind, max(start_ns, resident_ns), end_ns, end_ns - max(start_ns, resident_ns), share)
        self.comm_ns = end_ns

    def _host(self, kind: Kind, until_ns: int) -> None:
        if until_ns > self.host_ns:
            self._span("host", kind, self.host_ns, until_ns, 0, 0.0)
            self.host_ns = until_ns

    def _span(self, stream: Stream, kind: Kind, start_ns: int, end_ns: int, busy_ns: int, sm_active: float) -> None:
        if end_ns > start_ns:
            self._emit(
                Span(
                    rank=self.setup.rank, stream=stream, kind=kind, step=self.step,
                    start_ns=start_ns, end_ns=end_ns, busy_ns=busy_ns, sm_active=sm_active,
                )
            )


def arrival(setup: DeviceSetup, *, rank: int, step: int, host_ns: int, compute_ns: int, costs: StepCosts) -> Arrival:
    """The arrival of any rank, from its exchanged clocks: what is not exchanged follows from seed, rank and step."""
    return Arrival(host_ns=host_ns, compute_ns=compute_ns, pace=setup.pace(rank, step, "backward"), costs=costs)


def _part(phase: Phase, fraction: float) -> Phase:
    return Phase(
        kernels=max(1, round(phase.kernels * fraction)), busy_ns=round(phase.busy_ns * fraction),
        launch_ns=round(phase.launch_ns * fraction), critical_ns=round(phase.critical_ns * fraction), sm_active=phase.sm_active,
    )
