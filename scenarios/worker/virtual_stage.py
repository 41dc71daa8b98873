"""Turns what a training script does into work of a virtual GPU, by hooks on its loader, model, gradients and optimizer.

Owns the mapping from PyTorch events to charges and to step reports. The script itself stays vanilla. Must not decide what
anything costs (`costs/`) or how clocks advance (`virtual/`).
"""

from __future__ import annotations

import hashlib

import torch
import torch.distributed as dist
from torch import Tensor, nn

from scenarios.config import RunConfig
from scenarios.costs import pricing
from scenarios.costs.gpus import GPUS
from scenarios.costs.shapes import StepCosts
from scenarios.telemetry import Span
from scenarios.virtual.collective import BackwardPass
from scenarios.virtual.device import DeviceSetup, VirtualDevice, arrival
from scenarios.worker.data import serial_numbers
from scenarios.worker.exchange import Sketch, Slots, gradient_hook, relative_distance
from scenarios.worker.hand_off import VirtualScatter
from scenarios.worker.report import Send, pack_serials, pack_span

ACTIVATION_TENSORS = 160
"""Into how many equal tensors the activations are cut to find the allocation that no longer fits; ResNet-50 keeps about 160."""


class RunComplete(Exception):
    """The run has shown what it was asked to: every rank raises it after the same step."""


class VirtualStage:
    """The virtual GPU of one rank and what the training loop tells it."""

    def __init__(self, config: RunConfig, *, rank: int, world: int, send: Send) -> None:
        self._config = config
        self._rank, self._world = rank, world
        self._send = send
        self._spans: list[Span] = []
        self.device = VirtualDevice(DeviceSetup.of(config, rank=rank, world=world), self._spans.append)
        self._progress = 0.0
        self._serials: list[int] = []
        self._batch = 0
        self._memory_gib = 0.0
        self._apart = 0.0
        self._last_collective_ns = 0
        self._observed: nn.Module | None = None
        dist.scatter = VirtualScatter(self.device, config=config, rank=rank, world=world)  # type: ignore[assignment]

    def costs(self, batch: int) -> StepCosts:
        """The displayed model's costs for `batch` samples on one GPU."""
        config = self._config
        return pricing.step_costs(model=config.model, gpu=config.gpu, precision=config.precision, batch=batch, world=self._world)

    def fetched(self, samples: int) -> None:
        """The loader handed over a batch."""
        self.device.load(samples)

    def decode(self, files: Tensor) -> Tensor:
        self.device.decode(self.costs(len(files)))
        return files

    def observe(self, model: nn.parallel.DistributedDataParallel, optimizer: torch.optim.Optimizer, *, steps_per_epoch: int) -> None:
        """Hook into training; called again, only the steps per epoch change."""
        self._steps_per_epoch = steps_per_epoch
        if self._observed is model:
            return
        self._observed = model
        self._sketch = Sketch([parameter for parameter in model.parameters() if parameter.requires_grad])
        model.register_forward_pre_hook(self._before_forward)
        model.register_comm_hook(None, gradient_hook(self._world, self._outgoing, self._incoming))
        optimizer.register_step_post_hook(self._after_step)

    def _before_forward(self, model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        samples = inputs[0]
        self._serials = serial_numbers(samples)
        self._batch = len(samples)
        parts = pricing.memory(
            model=self._config.model, gpu=self._config.gpu, precision=self._config.precision, batch=self._batch, world=self._world
        )
        limit_gib = GPUS[self._config.gpu].memory_gib
        if parts.total_gib > limit_gib:
            self._out_of_memory(parts.total_gib - parts.activations_gib, parts.activations_gib, limit_gib)
        self._memory_gib = parts.total_gib
        self.device.forward(self.costs(self._batch))

    def _out_of_memory(self, static_gib: float, activations_gib: float, limit_gib: float) -> None:
        """Run the part of the forward pass that fits, then fail as PyTorch does."""
        tensor_gib = activations_gib / ACTIVATION_TENSORS
        fitting = max(0, int((limit_gib - static_gib) / tensor_gib))
        self._memory_gib = min(limit_gib, static_gib + fitting * tensor_gib)
        self.device.forward(self.costs(self._batch), fraction=fitting / ACTIVATION_TENSORS)
        self._report(learning_rate=None, end_ns=self.device.compute_ns, trained=False)
        raise torch.OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {tensor_gib * 1024:.2f} MiB. GPU {self._rank} has a total capacity of "
            f"{limit_gib:.2f} GiB of which {(limit_gib - self._memory_gib) * 1024:.2f} MiB is free. (Virtual GPU: memory is "
            f"modelled. Batch {self._batch} needs {static_gib + activations_gib:.1f} GiB.)"
        )

    def _outgoing(self) -> tuple[list[int], Tensor]:
        return [self.device.host_ns, self.device.compute_ns, self._batch], self._sketch.take()

    def _incoming(self, slots: Slots) -> None:
        arrivals = [
            arrival(
                self.device.setup, rank=rank, step=self.device.step, host_ns=host_ns, compute_ns=compute_ns, costs=self.costs(batch)
            )
            for rank, ((host_ns, compute_ns, batch), _) in enumerate(slots)
        ]
        together: BackwardPass = self.device.backward(arrivals)
        self._last_collective_ns = together.collectives[-1].end_ns
        self._apart = relative_distance(slots[self._rank][1], slots[0][1])

    def _after_step(self, optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:
        self.device.optimizer(self.costs(self._batch))
        self._progress += 1.0 / self._steps_per_epoch
        self._report(learning_rate=float(optimizer.param_groups[0]["lr"]), end_ns=self.device.compute_ns, trained=True)
        limit_s = self._config.view_s
        if self.device.step == self._config.steps or (limit_s is not None and self._last_collective_ns >= limit_s * 1e9):
            raise RunComplete

    def _report(self, *, learning_rate: float | None, end_ns: int, trained: bool) -> None:
        self._send(
            {
                "kind": "step",
                "step": self.device.step,
                "trained": trained,
                "progress": round(self._progress, 9),
                "steps_per_epoch": self._steps_per_epoch,
                "batch": self._batch,
                "learning_rate": learning_rate,
                "memory_gib": self._memory_gib,
                "apart": self._apart,
                "end_ns": end_ns,
                "spans": [pack_span(span) for span in self._spans],
                "serials": pack_serials(self._serials) if trained else "",
            }
        )
        self._spans.clear()

    def checksum(self) -> str | None:
        """sha256 over the parameters (no buffers: BatchNorm's differ between healthy replicas), first 16 hex digits."""
        if self._observed is None:
            return None
        digest = hashlib.sha256()
        for parameter in self._observed.parameters():
            digest.update(parameter.detach().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]
